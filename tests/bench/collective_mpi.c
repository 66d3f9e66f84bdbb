/* An MPI library, for collective.c. Errors of the library end the program (MPI_ERRORS_ARE_FATAL). */
#include <mpi.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collective.h"

static MPI_Comm comm =
    MPI_COMM_NULL; /* of the measurement: the selection of an algorithm applies to new communicators */
static const char *selected;

void library_start(int *argc, char ***argv, int *rank, int *ranks)
{
    int level;

    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &level) != MPI_SUCCESS ||
        MPI_Init(argc, argv) != MPI_SUCCESS)
        exit(1);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, ranks);
}

void library_abort(void)
{
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

/* MPI_Finalize may never return. */
void library_end(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(0);
}

static void set_variable(const char *name, int value)
{
    int index, count, verbosity, name_length = 0, desc_length = 0, binding, scope;
    MPI_Datatype type;
    MPI_T_enum values;
    MPI_T_cvar_handle handle;

    if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS)
        give_up("there is no such control variable");
    if (MPI_T_cvar_get_info(index, NULL, &name_length, &verbosity, &type, &values, NULL,
                            &desc_length, &binding, &scope) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
        give_up("the control variable cannot be used");
    if ((type != MPI_INT && type != MPI_UNSIGNED) || count != 1)
        give_up("the control variable is not a number");
    if (MPI_T_cvar_write(handle, &value) != MPI_SUCCESS)
        give_up("the control variable cannot be set");
    MPI_T_cvar_handle_free(&handle);
}

void library_prepare(const char *variable, int value)
{
    selected = variable;
    if (selected != NULL)
        set_variable(selected, value);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
}

void library_finish(void)
{
    if (selected != NULL)
        set_variable(selected, 0);
    MPI_Comm_free(&comm);
}

void *library_new(size_t bytes, bool registered)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)registered;
    if (memory == MAP_FAILED)
        give_up("out of memory");
    return memory;
}

void library_free(void *area, size_t bytes, bool registered)
{
    (void)registered;
    munmap(area, bytes);
}

void library_barrier(void)
{
    MPI_Barrier(comm);
}

void library_alltoall(const void *send, void *receive, size_t block)
{
    MPI_Alltoall(send, (int)block, MPI_BYTE, receive, (int)block, MPI_BYTE, comm);
}

void library_allgather(const void *send, void *receive, size_t block)
{
    MPI_Allgather(send, (int)block, MPI_BYTE, receive, (int)block, MPI_BYTE, comm);
}

void library_broadcast(void *buffer, size_t bytes)
{
    MPI_Bcast(buffer, (int)bytes, MPI_BYTE, 0, comm);
}

void library_allreduce(const double *send, double *receive, size_t count)
{
    MPI_Allreduce(send, receive, (int)count, MPI_DOUBLE, MPI_SUM, comm);
}

static void reduce(void *values, size_t count, MPI_Datatype type, MPI_Op operation)
{
    int rank;

    MPI_Comm_rank(comm, &rank);
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : values, values, (int)count, type, operation, 0, comm);
}

void library_largest(double *values, size_t count)
{
    reduce(values, count, MPI_DOUBLE, MPI_MAX);
}

void library_sum(uint64_t *value)
{
    reduce(value, 1, MPI_UINT64_T, MPI_SUM);
}
