/* Communicators that come, go and stay: communicators NAME..., one after the other. */
#include "scenario.h"

/* ---- Error handlers -------------------------------------------------------------------------- */

static int errors;
static MPI_Comm error_on;

static void count_errors(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    error_on = *comm;
    errors++;
}

/* Errors are the program's, on the communicator that it calls with. Those of others would end it. */
static void handlers(void)
{
    int lengths[] = {1, 1}, gap[] = {0, 2}, in[8] = {0}, *out = calloc((size_t)size, sizeof in);
    int expected = 2;
    MPI_Errhandler handler, before;
    MPI_Datatype type;
    MPI_Comm comm;

    MPI_Comm_create_errhandler(count_errors, &handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    use(comm);
    CHECK(errors == 0);
    MPI_Bcast(in, -1, MPI_INT, 0, comm);
    CHECK(errors == 1 && error_on == comm);
    MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL, comm);
    CHECK(errors == 2 && error_on == comm);
#ifdef MPICH /* whose handles are numbers */
    MPI_Bcast(in, 1, (MPI_Datatype)MPI_COMM_WORLD, 0, comm);
    CHECK(errors == ++expected && error_on == comm);
#endif
    MPI_Type_indexed(2, lengths, gap, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Allgather(in, 1, type, out, 2, MPI_INT, comm);
    MPI_Type_free(&type);
    CHECK(errors == expected);
    /* They are as the program has set them. */
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    CHECK(before == MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&before);
    MPI_Comm_get_errhandler(comm, &before);
    CHECK(before == handler);
    MPI_Errhandler_free(&before);
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&handler);
    free(out);
}

static const struct scenario scenarios[] = {
    {"handlers", handlers},
};

int main(int argc, char **argv)
{
    return run_scenarios(scenarios, sizeof scenarios / sizeof scenarios[0], argc, argv,
                         MPI_THREAD_SINGLE);
}
