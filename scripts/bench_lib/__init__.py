"""What bench_dense.py, bench_ragged.py and bench.py share.

Imports point downwards:

    dense, ragged, general      one for each script: what is measured, and the targets
      session                   options, folders, results; the order of a run
        worker, child, hosts    a process for each contender, driven over a pipe
          backends, loaders     the contenders, one small class each
          data, check, timing   records and plans; is an answer right; how long it takes
        targets, report, plot   ratios against PERFORMANCE targets; table, JSON, PNG
    environment                 virtual environments; needs the standard library only

Every contender runs in a fresh process of its own, so that what one leaves on
the heap is not there for another, and so that two versions of one package can
be held against each other.
"""
