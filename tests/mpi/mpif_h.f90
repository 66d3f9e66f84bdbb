! Collective operations through mpif.h.
program mpif_h
    implicit none
    include 'mpif.h'
#include "fortran_body.inc"
end program
#include "fortran_operator.inc"
