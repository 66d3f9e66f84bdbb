/* Communicators that are made, freed and kept. communicators NAME... runs these tests in order. */
#include <stdbool.h>

#include "scenario.h"

/* ---- Using up communicators ------------------------------------------------------------------ */

#define HOARD                                                                                      \
    2500 /* more than MPICH has (2048). Open MPI has more than anyone would try to use up */

/* Makes communicators of this rank alone, which cost no messages, until only `left` more are possible. */
static MPI_Comm hoard[HOARD];
static int hoarded;

static void hoard_all_but(int left)
{
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    while (hoarded < HOARD && MPI_Comm_dup(MPI_COMM_SELF, &hoard[hoarded]) == MPI_SUCCESS)
        hoarded++;
    while (left-- > 0)
        MPI_Comm_free(&hoard[--hoarded]);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static void free_hoard(void)
{
    while (hoarded > 0)
        MPI_Comm_free(&hoard[--hoarded]);
}

static void few_left(void)
{
    hoard_all_but(12);
}

/* ---- Made in many ways ----------------------------------------------------------------------- */

static void make_dup(MPI_Comm *comm)
{
    MPI_Comm_dup(MPI_COMM_WORLD, comm);
}

static void make_dup_with_info(MPI_Comm *comm)
{
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, comm);
}

static void make_idup(MPI_Comm *comm)
{
    MPI_Request request;

    MPI_Comm_idup(MPI_COMM_WORLD, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* The ranks in reverse order. */
static void make_split(MPI_Comm *comm)
{
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, comm);
}

static void make_create(MPI_Comm *comm)
{
    MPI_Group group;

    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, comm);
    MPI_Group_free(&group);
}

static void make_create_group(MPI_Comm *comm)
{
    MPI_Group group;

    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 8, comm);
    MPI_Group_free(&group);
}

static void make_cart(MPI_Comm *comm)
{
    int dims[] = {2, size / 2}, periods[] = {1, 1};

    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, comm);
}

static void (*const ways[])(MPI_Comm *comm) = {
    make_dup, make_dup_with_info, make_idup, make_split, make_create, make_create_group, make_cart};
#define WAYS ((int)(sizeof ways / sizeof ways[0]))

/* As many at the same time as possible. */
static void kept(void)
{
    MPI_Comm comms[WAYS];

    for (int i = 0; i < WAYS; i++) {
        ways[i](&comms[i]);
        use(comms[i]);
    }
    for (int i = 0; i < WAYS; i++)
        use(comms[i]);
    for (int i = 0; i < WAYS; i++)
        MPI_Comm_free(&comms[i]);
}

/* Many times that number, one after another. */
static void freed(void)
{
    for (int i = 0; i < 6 * WAYS; i++) {
        MPI_Comm comm;
        ways[i % WAYS](&comm);
        use(comm);
        if (i % 2 == 0)
            MPI_Comm_free(&comm);
        else
            MPI_Comm_disconnect(&comm);
    }
}

/* The program does not free them. */
static void left_open(void)
{
    for (int i = 0; i < WAYS; i++) {
        MPI_Comm comm;
        ways[i](&comm);
        use(comm);
    }
}

static void between(void)
{
    int low = rank < size / 2, sum = 0;

    for (int i = 0; i < 8; i++) {
        MPI_Comm half, inter, both;
        MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 9, &inter);
        MPI_Allreduce(&low, &sum, 1, MPI_INT, MPI_SUM, inter);
        CHECK(sum == (low ? 0 : size / 2));
        MPI_Intercomm_merge(inter, !low, &both);
        use(both);
        MPI_Comm_free(&both);
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
}

/* Until MPI has none left; existing communicators still work. */
static void until_none(void)
{
    static MPI_Comm comms[64];
    int count = 0, most = 0;

    hoard_all_but(20);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    while (count < 64 && MPI_Comm_dup(MPI_COMM_WORLD, &comms[count]) == MPI_SUCCESS)
        use(comms[count++]);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Allreduce(&count, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(count == most && count >= 18);
    for (int i = 0; i < count; i++)
        use(comms[i]);
    use(MPI_COMM_WORLD);
    while (count > 0)
        MPI_Comm_free(&comms[--count]);
    make_dup(&comms[0]);
    use(comms[0]);
    MPI_Comm_free(&comms[0]);
    free_hoard();
    if (rank == 0)
        say("%d communicators", most);
}

/* ---- Attributes ------------------------------------------------------------------------------ */

static int copies, deletions;

/* Like a library that attaches a communicator of its own to each communicator of the program. */
static int copy_inner(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    MPI_Comm *inner = malloc(sizeof *inner);

    (void)comm, (void)keyval, (void)extra;
    MPI_Comm_dup(*(MPI_Comm *)in, inner);
    use(*inner);
    *(void **)out = inner;
    *flag = 1;
    copies++;
    return MPI_SUCCESS;
}

static int delete_inner(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)extra;
    use(*(MPI_Comm *)value);
    MPI_Comm_free(value);
    free(value);
    deletions++;
    return MPI_SUCCESS;
}

static void callbacks(void)
{
    MPI_Comm outer, copy, *inner = malloc(sizeof *inner);
    int keyval;

    MPI_Comm_create_keyval(copy_inner, delete_inner, &keyval, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &outer);
    MPI_Comm_dup(outer, inner);
    MPI_Comm_set_attr(outer, keyval, inner);
    use(outer);
    MPI_Comm_dup(outer, &copy);
    use(copy);
    MPI_Comm_free(&outer);
    use(copy);
    MPI_Comm_free(&copy);
    MPI_Comm_free_keyval(&keyval);
    CHECK(copies == 1 && deletions == 2);
}

/* ---- Error handlers -------------------------------------------------------------------------- */

static int errors;
static MPI_Comm error_on;

static void count_errors(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    error_on = *comm;
    errors++;
}

/* Errors go to the handler of the communicator in the program's call. Those of other communicators would end the
 * program. */
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
    /* The error handlers are still the program's. */
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

/* ---- Costs ----------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Prints the cost of a communicator that is made for one call. */
static void short_lived(void)
{
    enum { TURNS = 201 };
    double time[TURNS];
    int sum;

    use(MPI_COMM_WORLD);
    for (int i = 0; i < TURNS; i++) {
        MPI_Comm comm;
        MPI_Barrier(MPI_COMM_WORLD);
        time[i] = MPI_Wtime();
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        MPI_Comm_free(&comm);
        time[i] = MPI_Wtime() - time[i];
        CHECK(sum == size * (size - 1) / 2);
    }
    qsort(time, TURNS, sizeof *time, compare);
    if (rank == 0)
        say("%.1f us a communicator", time[TURNS / 2] * 1e6);
}

static void long_first_call(void)
{
    enum { COUNT = 20000 };
    double *in = calloc(COUNT, sizeof *in), *out = calloc(COUNT, sizeof *out);
    MPI_Comm comm;

    in[COUNT - 1] = rank;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, comm);
    CHECK(out[COUNT - 1] == size * (size - 1) / 2);
    MPI_Comm_free(&comm);
    free(in);
    free(out);
}

static const struct scenario scenarios[] = {
    {"few-left", few_left},
    {"kept", kept},
    {"freed", freed},
    {"left-open", left_open},
    {"between", between},
    {"until-none", until_none},
    {"callbacks", callbacks},
    {"handlers", handlers},
    {"short-lived", short_lived},
    {"long-first-call", long_first_call},
};

int main(int argc, char **argv)
{
    return run_scenarios(scenarios, sizeof scenarios / sizeof scenarios[0], argc, argv,
                         MPI_THREAD_SINGLE);
}
