"""Benchmark of the sampler, small calls, the loader and dictionaries; see --help.

Makes the virtual environments it needs on first use, in .cache/bench, and runs in
one of them; any Python 3.9 or newer can start it.
"""

from bench_lib import environment

if __name__ == "__main__":
    environment.enter()
    from bench_lib.general import main

    main()
