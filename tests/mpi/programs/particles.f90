! Charges on a mesh, as the PPPM of LAMMPS with "kspace_modify collective yes": particles go to the rank
! with their slab of the mesh, charges are added to it, MPI_Alltoallv transposes the mesh so that each rank has
! whole lines, potentials are computed along these, the mesh is transposed back, and each particle gets the
! potential at its place. All numbers are whole: each rank computes the results again directly from all
! particles, and compares.
!
!     particles [PARTICLES EACH] [STEPS]
!
! Prints "particles: right, energy E, SECONDS s", or an error.
program particles
    use mpi
    implicit none
    integer, parameter :: side = 32, fields = 4 ! x, y, z and charge
    integer :: rank, n, ierror, each, steps, step, i, wrong, all_wrong
    double precision, allocatable :: mine(:, :), potential(:), all(:, :)
    double precision :: energy(2), total(2), seconds
    character(len=32) :: argument

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, n, ierror)
    each = 60
    steps = 5
    if (command_argument_count() > 0) then
        call get_command_argument(1, argument)
        read (argument, *) each
    end if
    if (command_argument_count() > 1) then
        call get_command_argument(2, argument)
        read (argument, *) steps
    end if
    allocate (mine(fields, each), potential(each), all(fields, each * n))
    do i = 1, each
        mine(1, i) = mod(i * 7 + rank * 3, side)
        mine(2, i) = mod(i * 11 + rank, side)
        mine(3, i) = mod(i * 13 + rank * 5, side)
        mine(4, i) = mod(i + rank, 7) - 3
    end do
    wrong = 0
    energy = 0
    seconds = 0
    do step = 1, steps
        mine(3, :) = mod(mine(3, :) + 1 + rank, dble(side))
        mine(1, :) = mod(mine(1, :) + mine(3, :), dble(side))
        seconds = seconds - MPI_Wtime()
        call potentials(mine, each, potential)
        energy(1) = energy(1) + sum(mine(4, :) * potential)
        call MPI_Allreduce(energy, total, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
        seconds = seconds + MPI_Wtime()
        call MPI_Allgather(mine, fields * each, MPI_DOUBLE_PRECISION, all, fields * each, &
                           MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierror)
        do i = 1, each
            if (potential(i) /= directly(mine(:, i))) wrong = wrong + 1
        end do
    end do
    call MPI_Reduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
    call MPI_Bcast(all_wrong, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    if (rank == 0 .and. all_wrong == 0) &
        print '(a, i0, a, f0.6, a)', 'particles: right, energy ', nint(total(1), 8), ', ', &
        seconds / steps + 1d-9, ' s'
    if (rank == 0 .and. all_wrong /= 0) print '(a, i0, a)', 'particles: ', all_wrong, ' are wrong'
    call MPI_Finalize(ierror)
    if (all_wrong /= 0) stop 1

contains

    ! The offset of a rank's part, from 0.
    integer function begin(r)
        integer, intent(in) :: r
        begin = side * r / n
    end function

    double precision function weight(distance)
        integer, intent(in) :: distance
        integer :: d
        d = abs(distance)
        weight = side - min(d, side - d)
    end function

    double precision function directly(particle)
        double precision, intent(in) :: particle(fields)
        integer :: k
        directly = 0
        do k = 1, each * n
            if (all(1, k) == particle(1) .and. all(2, k) == particle(2)) &
                directly = directly + all(4, k) * weight(nint(all(3, k) - particle(3)))
        end do
    end function

    ! From slabs of the third direction to slabs of the second one, or back.
    subroutine turn(in, from_third, out)
        logical, intent(in) :: from_third
        double precision, intent(in) :: in(0:, 0:, 0:)
        double precision, intent(out) :: out(0:, 0:, 0:)
        double precision :: sent(size(in)), received(size(out))
        integer, dimension(0:n - 1) :: counts, places, counts_in, places_in
        integer :: r, x, a, b, at

        at = 0
        do r = 0, n - 1
            places(r) = at
            if (from_third) then
                do b = 0, size(in, 3) - 1
                    do a = begin(r), begin(r + 1) - 1
                        do x = 0, side - 1
                            at = at + 1
                            sent(at) = in(x, a, b)
                        end do
                    end do
                end do
            else
                do b = begin(r), begin(r + 1) - 1
                    do a = 0, size(in, 2) - 1
                        do x = 0, side - 1
                            at = at + 1
                            sent(at) = in(x, a, b)
                        end do
                    end do
                end do
            end if
            counts(r) = at - places(r)
        end do
        at = 0
        do r = 0, n - 1
            places_in(r) = at
            counts_in(r) = side * (begin(rank + 1) - begin(rank)) * (begin(r + 1) - begin(r))
            at = at + counts_in(r)
        end do
        call MPI_Alltoallv(sent, counts, places, MPI_DOUBLE_PRECISION, received, counts_in, &
                           places_in, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierror)
        at = 0
        do r = 0, n - 1
            if (from_third) then
                do b = begin(r), begin(r + 1) - 1
                    do a = 0, size(out, 2) - 1
                        do x = 0, side - 1
                            at = at + 1
                            out(x, a, b) = received(at)
                        end do
                    end do
                end do
            else
                do b = 0, size(out, 3) - 1
                    do a = begin(r), begin(r + 1) - 1
                        do x = 0, side - 1
                            at = at + 1
                            out(x, a, b) = received(at)
                        end do
                    end do
                end do
            end if
        end do
    end subroutine

    subroutine along_lines(density, result)
        double precision, intent(in) :: density(0:, 0:, 0:)
        double precision, intent(out) :: result(0:, 0:, 0:)
        integer :: z, other

        result = 0
        do z = 0, side - 1
            do other = 0, side - 1
                result(:, :, z) = result(:, :, z) + density(:, :, other) * weight(z - other)
            end do
        end do
    end subroutine

    ! The potential at each of these particles, from the particles of all ranks.
    subroutine potentials(those, count, result)
        integer, intent(in) :: count
        double precision, intent(in) :: those(fields, count)
        double precision, intent(out) :: result(count)
        integer, dimension(0:n - 1) :: counts, places, counts_in, places_in
        integer :: order(count), r, k, at, come, width
        double precision :: sent(fields, count), back(count)
        double precision, allocatable :: guests(:, :), found(:), mesh(:, :, :), lines(:, :, :)
        double precision, allocatable :: solved(:, :, :)

        at = 0
        do r = 0, n - 1
            places(r) = at
            do k = 1, count
                if (those(3, k) >= begin(r) .and. those(3, k) < begin(r + 1)) then
                    at = at + 1
                    sent(:, at) = those(:, k)
                    order(at) = k
                end if
            end do
            counts(r) = at - places(r)
        end do
        call MPI_Alltoall(counts, 1, MPI_INTEGER, counts_in, 1, MPI_INTEGER, MPI_COMM_WORLD, ierror)
        come = 0
        do r = 0, n - 1
            places_in(r) = come
            come = come + counts_in(r)
        end do
        width = begin(rank + 1) - begin(rank)
        allocate (guests(fields, max(come, 1)), found(max(come, 1)))
        allocate (mesh(0:side - 1, 0:side - 1, 0:width - 1))
        allocate (lines(0:side - 1, 0:width - 1, 0:side - 1), solved(0:side - 1, 0:width - 1, 0:side - 1))
        call MPI_Alltoallv(sent, fields * counts, fields * places, MPI_DOUBLE_PRECISION, guests, &
                           fields * counts_in, fields * places_in, MPI_DOUBLE_PRECISION, &
                           MPI_COMM_WORLD, ierror)
        mesh = 0
        do k = 1, come
            associate (p => guests(:, k))
                mesh(nint(p(1)), nint(p(2)), nint(p(3)) - begin(rank)) = &
                    mesh(nint(p(1)), nint(p(2)), nint(p(3)) - begin(rank)) + p(4)
            end associate
        end do
        call turn(mesh, .true., lines)
        call along_lines(lines, solved)
        call turn(solved, .false., mesh)
        do k = 1, come
            found(k) = mesh(nint(guests(1, k)), nint(guests(2, k)), nint(guests(3, k)) - begin(rank))
        end do
        call MPI_Alltoallv(found, counts_in, places_in, MPI_DOUBLE_PRECISION, back, counts, places, &
                           MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierror)
        do k = 1, count
            result(order(k)) = back(k)
        end do
    end subroutine
end program
