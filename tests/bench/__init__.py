"""scripts/bench: torusd compared with MPI_Alltoall and with the lower bound of the links, in one network.

arithmetic  sizes, medians, the lower bound
machine     the processors, and how busy they are
programs    compiling the C programs beside this file
network     a Mininet torus that also routes
systems     the interface of measured systems
ours        the systems of torusd
jobs        programs on all nodes, which measure on request
mpi         the systems of MPI libraries
warm        uncounted exchanges before the counted ones
run         one torus, all systems, all sizes
groups      calls of programs by libtorus and MPI, and the same operations by the daemons alone
goals       goals for the times of such calls
unlimited   unlimited links
growth      how cost grows with the torus
against     two builds in turn
tables/     results as tables, and as pages
plots       results as plots
"""
