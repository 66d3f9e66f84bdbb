#include "client/mpi/job/statistics.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "client/mpi/library/real.h"
#include "proto/text.h"

struct count {
    _Atomic uint64_t calls, bytes, nanoseconds;
};

static const char *const operations[] = {
#define X(name, kind) "MPI_" #name,
    OPERATIONS(X)
#undef X
};
static const char *const combined[] = {
#define X(name) "MPI_" #name " with other operators or types",
    COMBINED(X)
#undef X
};
static const char *const nonblocking[] = {
#define X(name, operation) [OPERATION_##operation] = "MPI_" #name,
    NONBLOCKING_PLAIN(X) NONBLOCKING(X)
#undef X
};
static const char *const reasons[] = {
#define X(name, text) text,
    REASONS(X)
#undef X
};

const char *mpi_operation_name(enum mpi_operation operation)
{
    return operation < OPERATIONS_COUNT ? operations[operation]
                                        : combined[operation - OPERATIONS_COUNT];
}

const char *mpi_nonblocking_name(enum mpi_operation operation)
{
    return nonblocking[operation];
}

const char *reason_text(enum reason reason)
{
    return reasons[reason];
}

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* The operations, and then their nonblocking forms. */
#define ROWS (2 * OPERATIONS_COUNT)

static struct count counts[ROWS][COUNT(reasons)];

uint64_t statistics_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void add(_Atomic uint64_t *to, uint64_t value)
{
    atomic_fetch_add_explicit(to, value, memory_order_relaxed);
}

static struct count *row_of(enum mpi_operation operation, bool is_nonblocking)
{
    return counts[(unsigned)operation + (is_nonblocking ? OPERATIONS_COUNT : 0)];
}

static const char *row_name(unsigned row)
{
    return row < OPERATIONS_COUNT ? operations[row] : nonblocking[row - OPERATIONS_COUNT];
}

void statistics_add(enum mpi_operation operation, bool is_nonblocking, enum reason reason,
                    uint64_t bytes, uint64_t nanoseconds)
{
    struct count *c = &row_of(operation, is_nonblocking)[reason];

    add(&c->calls, 1);
    add(&c->bytes, bytes);
    add(&c->nanoseconds, nanoseconds);
}

void statistics_add_time(enum mpi_operation operation, bool is_nonblocking, uint64_t nanoseconds)
{
    add(&row_of(operation, is_nonblocking)[REASON_SERVED].nanoseconds, nanoseconds);
}

/* ---- Operations that torusd does not serve --------------------------------------------------- */

static const struct {
    const char *name, *reason;
} unserved[UNSERVED_COUNT] = {
/* clang-format off */
#define ROW(name, text, why) [UNSERVED_##name] = {text, "not served by torusd" why},
#define X(name, shape) ROW(name, "MPI_" #name, ": nonblocking")
    UNSERVED_NONBLOCKING(X)
#undef X
#define X(name, shape) ROW(name, ABI_TEXT(ABI_PERSISTENT(name)), ": persistent")
    UNSERVED_PERSISTENT_PLAIN(X)
    UNSERVED_PERSISTENT(X)
#undef X
#undef ROW
    /* clang-format on */
};

static struct {
    _Atomic uint64_t calls, starts, bytes;
} unserved_counts[UNSERVED_COUNT];

void statistics_add_unserved(enum unserved operation, uint64_t bytes)
{
    add(&unserved_counts[operation].calls, 1);
    if (bytes > 0)
        add(&unserved_counts[operation].bytes, bytes);
}

void statistics_add_start(enum unserved operation, uint64_t bytes)
{
    add(&unserved_counts[operation].starts, 1);
    add(&unserved_counts[operation].bytes, bytes);
}

/* ---- Adding up ------------------------------------------------------------------------------- */

/* What all ranks have counted, in the same order on all of them. */
struct sums {
    struct sum {
        uint64_t calls, bytes, nanoseconds;
    } served[ROWS][COUNT(reasons)];
    struct unserved_sum {
        uint64_t calls, starts, bytes;
    } unserved[UNSERVED_COUNT];
};
#define SUMS (sizeof(struct sums) / sizeof(uint64_t))

static void take_counts(struct sums *s)
{
    for (unsigned o = 0; o < ROWS; o++)
        for (unsigned r = 0; r < COUNT(reasons); r++)
            s->served[o][r] =
                (struct sum){counts[o][r].calls, counts[o][r].bytes, counts[o][r].nanoseconds};
    for (unsigned o = 0; o < UNSERVED_COUNT; o++)
        s->unserved[o] = (struct unserved_sum){unserved_counts[o].calls, unserved_counts[o].starts,
                                               unserved_counts[o].bytes};
}

/* Adds up the counts of all ranks at rank 0. Returns 0, or -1 if MPI fails. */
static int add_up(MPI_Comm comm, const struct sums *mine, struct sums *all)
{
    return real.Reduce(mine, all, (int)SUMS, mpi.uint64, mpi.sum, 0, comm) == MPI_SUCCESS ? 0 : -1;
}

/* ---- Printing -------------------------------------------------------------------------------- */

/* Prints "MPI_Alltoall 12 calls, 4096 bytes, 0.003 s" or, with a reason, "MPI_Bcast 5 calls, 0.001 s (REASON)". */
static void print_count(FILE *to, const struct sums *s, unsigned row, unsigned reason,
                        const char **separator)
{
    const struct sum *c = &s->served[row][reason];

    if (c->calls == 0)
        return;
    (void)fprintf(to, "%s%s %" PRIu64 " %s", *separator, row_name(row), c->calls,
                  text_plural(c->calls, "call", "calls"));
    if (reason == REASON_SERVED)
        (void)fprintf(to, ", %" PRIu64 " %s", c->bytes, text_plural(c->bytes, "byte", "bytes"));
    (void)fprintf(to, ", %.3f s", (double)c->nanoseconds / 1e9);
    if (reason != REASON_SERVED)
        (void)fprintf(to, " (%s)", reasons[reason]);
    *separator = "; ";
}

/* Prints "MPI_Iscan 12 calls, 96 bytes (not served by torusd: nonblocking)", "MPI_Bcast_init 1 call, 20
 * starts...". */
static void print_unserved(FILE *to, const struct sums *s, unsigned operation,
                           const char **separator)
{
    uint64_t calls = s->unserved[operation].calls, starts = s->unserved[operation].starts;
    uint64_t bytes = s->unserved[operation].bytes;

    if (calls == 0)
        return;
    (void)fprintf(to, "%s%s %" PRIu64 " call%s", *separator, unserved[operation].name, calls,
                  calls == 1 ? "" : "s");
    if (starts > 0)
        (void)fprintf(to, ", %" PRIu64 " start%s", starts, starts == 1 ? "" : "s");
    if (bytes > 0)
        (void)fprintf(to, ", %" PRIu64 " bytes", bytes);
    (void)fprintf(to, " (%s)", unserved[operation].reason);
    *separator = "; ";
}

static void print_all(FILE *to, const struct sums *s, uint32_t ranks)
{
    const char *separator = "";

    (void)fprintf(to, "torus: all %" PRIu32 " ranks together: served: ", ranks);
    for (unsigned o = 0; o < ROWS; o++)
        print_count(to, s, o, REASON_SERVED, &separator);
    (void)fputs(*separator == '\0' ? "nothing; left to MPI: " : "; left to MPI: ", to);
    separator = "";
    for (unsigned o = 0; o < ROWS; o++)
        for (unsigned r = REASON_SERVED + 1; r < COUNT(reasons); r++)
            print_count(to, s, o, r, &separator);
    for (unsigned o = 0; o < UNSERVED_COUNT; o++)
        print_unserved(to, s, o, &separator);
    if (*separator == '\0')
        (void)fputs("nothing", to);
    (void)fputc('\n', to);
}

/* Writes the line at once, so that lines of other processes do not mix with it. */
void statistics_print(MPI_Comm comm, uint32_t rank, uint32_t ranks)
{
    static struct sums mine, all; /* too large for a small stack */
    char *line = NULL;
    size_t size;
    FILE *to;

    take_counts(&mine);
    if (add_up(comm, &mine, &all) != 0 || rank != 0)
        return;
    to = open_memstream(&line, &size);
    if (to == NULL)
        return;
    print_all(to, &all, ranks);
    if (fclose(to) == 0)
        (void)fputs(line, stderr);
    free(line);
}
