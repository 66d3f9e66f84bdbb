"""scripts/bench: torusd beside MPI_Alltoall and beside what the links allow, in one network.

arithmetic  sizes, medians, the lower bound, routes     tables      results as tables, and RESULTS.md
machine     processors: what they are, how busy         plots       results as plots
programs    compiling the C programs beside this file   growth      how cost grows with the torus
network     a Mininet torus that also routes            unlimited   links without a limit
systems     what is measured: algorithms of ours, MPI   run         one torus, all systems, all sizes
"""
