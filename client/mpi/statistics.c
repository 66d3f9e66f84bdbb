#include "client/mpi/statistics.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "proto/text.h"

struct count {
    _Atomic uint64_t calls, bytes, nanoseconds;
};

static const char *const operations[] = {
#define X(name, text) text,
    OPERATIONS(X)
#undef X
};
static const char *const reasons[] = {
#define X(name, text) text,
    REASONS(X)
#undef X
};

const char *operation_name(enum operation operation)
{
    return operations[operation];
}

const char *reason_text(enum reason reason)
{
    return reasons[reason];
}

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static struct count counts[COUNT(operations)][COUNT(reasons)];

uint64_t statistics_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void statistics_add(enum operation operation, enum reason reason, uint64_t bytes,
                    uint64_t nanoseconds)
{
    struct count *c = &counts[operation][reason];

    atomic_fetch_add_explicit(&c->calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->nanoseconds, nanoseconds, memory_order_relaxed);
}

/* "MPI_Alltoall 12 calls, 4096 bytes, 0.003 s", and why if there is a reason. */
static void print_count(FILE *to, unsigned operation, unsigned reason, const char **separator)
{
    struct count *c = &counts[operation][reason];

    if (c->calls == 0)
        return;
    (void)fprintf(to, "%s%s %" PRIu64 " %s", *separator, operations[operation], c->calls,
                  text_plural(c->calls, "call", "calls"));
    if (reason == REASON_TAKEN)
        (void)fprintf(to, ", %" PRIu64 " %s", c->bytes, text_plural(c->bytes, "byte", "bytes"));
    (void)fprintf(to, ", %.3f s", (double)c->nanoseconds / 1e9);
    if (reason != REASON_TAKEN)
        (void)fprintf(to, " (%s)", reasons[reason]);
    *separator = "; ";
}

void statistics_print(void)
{
    char line[8192];
    FILE *to = fmemopen(line, sizeof line, "w");
    const char *separator = "";

    if (to == NULL)
        return;
    (void)fputs("torus: taken: ", to);
    for (unsigned o = 0; o < COUNT(operations); o++)
        print_count(to, o, REASON_TAKEN, &separator);
    (void)fputs(*separator == '\0' ? "nothing; fallen back: " : "; fallen back: ", to);
    separator = "";
    for (unsigned o = 0; o < COUNT(operations); o++)
        for (unsigned r = REASON_TAKEN + 1; r < COUNT(reasons); r++)
            print_count(to, o, r, &separator);
    if (*separator == '\0')
        (void)fputs("nothing", to);
    (void)fputc('\n', to);
    (void)fclose(to);
    line[sizeof line - 1] = '\0';
    (void)fputs(line, stderr);
}
