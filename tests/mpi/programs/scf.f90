! A self-consistent field, as electronic structure programs compute it: the lowest state of a matrix that
! depends on the density of that state, until it does not change any more. Rows of the matrix are spread
! over the ranks; MPI_Allgatherv collects the vector, MPI_Allreduce sums products, and rank 0 mixes
! densities and sends them by MPI_Bcast. Rank 0 then computes everything by itself, and compares.
!
!     scf [ROWS]
!
! Prints "scf: right, energy E after N iterations, SECONDS s", or an error.
program scf
    use mpi_f08
    implicit none
    integer, parameter :: most = 200
    double precision, parameter :: enough = 1d-6
    integer :: rank, n, rows, iterations, alone_iterations, wrong
    double precision :: energy, alone, seconds
    character(len=32) :: argument

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, n)
    rows = 96
    if (command_argument_count() > 0) then
        call get_command_argument(1, argument)
        read (argument, *) rows
    end if
    call MPI_Barrier(MPI_COMM_WORLD)
    seconds = MPI_Wtime()
    call converge(.true., energy, iterations)
    seconds = MPI_Wtime() - seconds
    wrong = 0
    if (rank == 0) then
        call converge(.false., alone, alone_iterations)
        if (.not. abs(energy - alone) < 1d-8 .or. iterations >= most) wrong = 1
        if (wrong == 0) then
            print '(a, f0.7, a, i0, a, f0.6, a)', 'scf: right, energy ', energy, ' after ', iterations, &
                ' iterations, ', seconds + 1d-9, ' s'
        else
            print '(a, 2es22.14, a, 2(1x, i0))', 'scf: energies', energy, alone, ' after', iterations, &
                alone_iterations
        end if
    end if
    call MPI_Bcast(wrong, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call MPI_Finalize()
    if (wrong /= 0) stop 1

contains

    integer function begin(r)
        integer, intent(in) :: r
        begin = rows * r / n
    end function

    double precision function element(i, j)
        integer, intent(in) :: i, j
        if (i == j) then
            element = 1 + 4 * abs(2 * dble(i) / rows - 1)
        else
            element = -1d0 / (i - j)**2
        end if
    end function

    ! The sum over all ranks, unless this one computes alone.
    double precision function total(together, part)
        logical, intent(in) :: together
        double precision, intent(in) :: part
        total = part
        if (together) call MPI_Allreduce(part, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    end function

    subroutine converge(together, e, iteration)
        logical, intent(in) :: together
        double precision, intent(out) :: e
        integer, intent(out) :: iteration
        integer :: first, last, i, turn, counts(n), places(n)
        double precision :: x(rows), density(rows), before(rows), matrix(rows, rows), change, norm
        double precision, allocatable :: part(:)
        logical :: done, all_done

        first = 1
        last = rows
        if (together) then
            first = begin(rank) + 1
            last = begin(rank + 1)
            counts = [(begin(i) - begin(i - 1), i = 1, n)]
            places = [(begin(i - 1), i = 1, n)]
        end if
        allocate (part(first:last))
        do i = first, last
            matrix(:, i) = [(element(i, turn), turn = 1, rows)] ! symmetric
        end do
        x = 1 / sqrt(dble(rows))
        density = x**2
        do iteration = 1, most
            do turn = 1, 8 ! of the power method, for the lowest of all states
                do i = first, last
                    part(i) = 12 * x(i) - dot_product(matrix(:, i), x) - 3 * density(i) * x(i)
                end do
                norm = sqrt(total(together, sum(part**2)))
                part = part / norm
                if (together) then
                    call MPI_Allgatherv(part, last - first + 1, MPI_DOUBLE_PRECISION, x, counts, &
                                        places, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)
                else
                    x = part
                end if
            end do
            e = 12 - norm
            before = density
            if (rank == 0) density = 0.5d0 * density + 0.5d0 * x**2
            if (together) call MPI_Bcast(density, rows, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
            change = maxval(abs(density(first:last) - before(first:last)))
            done = change < enough
            all_done = done
            if (together) call MPI_Allreduce(done, all_done, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD)
            if (all_done) exit
        end do
    end subroutine
end program
