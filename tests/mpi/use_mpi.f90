! Collective operations through the module mpi.
program use_mpi
    use mpi
    implicit none
#include "fortran_body.inc"
end program
#include "fortran_operator.inc"
