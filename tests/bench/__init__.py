"""scripts/bench: torusd beside MPI_Alltoall and beside what the links allow, in one network.

arithmetic  sizes, medians, the lower bound, routes
machine     processors: what they are, how busy
programs    compiling the C programs beside this file
network     a Mininet torus that also routes
systems     what is measured
ours        the systems of torusd
jobs        programs on all nodes, which measure on request
mpi         the systems of MPI libraries
warm        exchanges that are not counted, before those that are
run         one torus, all systems, all sizes
groups      calls of programs: libtorus, MPI, and the daemons' own
goals       what such calls should take
unlimited   links without a limit
growth      how cost grows with the torus
against     two builds in turn
tables/     results as tables, and as pages
plots       results as plots
"""
