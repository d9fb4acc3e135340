"""Benchmark of dense stores against what else there is; see --help and docs/performance.md.

Makes the virtual environments it needs on first use, in .cache/bench, and runs in
one of them; any Python 3.9 or newer can start it.
"""

from bench_lib import environment

if __name__ == "__main__":
    environment.enter()
    from bench_lib.dense import main

    main()
