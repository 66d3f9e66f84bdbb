! Collective operations through the module mpi_f08.
module operators
contains
    subroutine apply_functions(in, inout, count, type)
        use, intrinsic :: iso_c_binding
        use mpi_f08
        implicit none
        type(c_ptr), value :: in, inout
        integer :: count
        type(MPI_Datatype) :: type
        integer, pointer :: left(:, :), right(:, :)

        call c_f_pointer(in, left, [2, count])
        call c_f_pointer(inout, right, [2, count])
        right(2, :) = left(2, :) * right(1, :) + right(2, :)
        right(1, :) = left(1, :) * right(1, :)
    end subroutine
end module

program use_mpi_f08
    use operators
    use mpi_f08
#ifdef OPEN_MPI
    use mpi_f08_ext
#endif
    implicit none
    integer, parameter :: most = 64
    integer :: ierror, rank, n, i, total
    integer :: out(most), in(most), counts(most), displacements(most)
    integer :: byte_displacements(most)
    type(MPI_Datatype) :: types(most)
    type(MPI_Comm) :: row, ring
    type(MPI_Request) :: request, requests(2)
    double precision :: x(most), y(most)
    double complex :: z, w
    logical :: right, all_right
    type(MPI_Op) :: operator
    type(MPI_Datatype) :: pair
    integer :: function(2), composed(2), prefix(2)

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, n, ierror)
    right = .true.
    do i = 1, n
        out(i) = 1000 * rank + i
        counts(i) = 1
        displacements(i) = i - 1
        types(i) = MPI_INTEGER
    end do
    call MPI_Alltoall(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    right = right .and. all(in(1:n) == [(1000 * (i - 1) + rank + 1, i = 1, n)])
    call MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INTEGER, in, 1, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    right = right .and. all(in(1:n) == out(1:n))
    call MPI_Alltoallv(out, counts, displacements, MPI_INTEGER, in, counts, displacements, &
                       MPI_INTEGER, MPI_COMM_WORLD, ierror)
    right = right .and. all(in(1:n) == [(1000 * (i - 1) + rank + 1, i = 1, n)])
    in = 0
    displacements(1:n) = 4 * displacements(1:n)
    call MPI_Alltoallw(out, counts, displacements, types, in, counts, displacements, types, &
                       MPI_COMM_WORLD, ierror)
    right = right .and. all(in(1:n) == [(1000 * (i - 1) + rank + 1, i = 1, n)])
    displacements(1:n) = displacements(1:n) / 4
    call MPI_Allgather(rank, 1, MPI_INTEGER, in, 1, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    right = right .and. all(in(1:n) == [(i - 1, i = 1, n)])
    in = 0
    in(rank + 1) = rank
    call MPI_Allgatherv(MPI_IN_PLACE, 1, MPI_INTEGER, in, counts, displacements, MPI_INTEGER, &
                        MPI_COMM_WORLD, ierror)
    right = right .and. all(in(1:n) == [(i - 1, i = 1, n)])
    x = rank + 0.5d0
    call MPI_Allreduce(x, y, most, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
    right = right .and. all(y == n * (n - 1) / 2 + 0.5d0 * n)
    call MPI_Allreduce(MPI_IN_PLACE, x, most, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierror)
    right = right .and. all(x == n - 0.5d0)
    z = cmplx(rank, 1, kind(z))
    call MPI_Allreduce(z, w, 1, MPI_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD, ierror)
    right = right .and. w == cmplx(n * (n - 1) / 2, n, kind(z))
    call MPI_Reduce(rank, total, 1, MPI_INTEGER, MPI_SUM, n - 1, MPI_COMM_WORLD, ierror)
    right = right .and. (rank /= n - 1 .or. total == n * (n - 1) / 2)
    call MPI_Reduce_scatter_block(out, total, 1, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD, ierror)
    right = right .and. total == rank + 1
    call MPI_Reduce_scatter(out, total, counts, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierror)
    right = right .and. total == 1000 * (n - 1) + rank + 1
    x = rank
    call MPI_Bcast(x, most, MPI_DOUBLE_PRECISION, 1, MPI_COMM_WORLD, ierror)
    right = right .and. all(x == 1)
    call MPI_Comm_split(MPI_COMM_WORLD, rank / 2, -rank, row, ierror)
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, row, ierror)
    right = right .and. total == 4 * (rank / 2) + 1
    call MPI_Comm_free(row, ierror)
#include "fortran_operators.inc"
#include "fortran_unserved.inc"
    call MPI_Allreduce(right, all_right, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierror)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    if (rank == 0 .and. all_right) print '(a)', 'right'
    call MPI_Finalize(ierror)
end program
