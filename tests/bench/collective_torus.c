/* libtorus, for collective.c: a group of the whole torus. */
#include <stdio.h>
#include <stdlib.h>
#include <torus/group.h>
#include <unistd.h>

#include "collective.h"

#define NAME "bench"
#define OPENING_MS 60000

static struct torus_group *group;
static struct torus_error error;

static void must(int result)
{
    if (result != 0)
        give_up(error.text);
}

void library_start(int *argc, char ***argv, int *rank, int *ranks)
{
    struct torus_group_options options;

    (void)argc;
    (void)argv;
    torus_group_options_init(&options);
    options.name = NAME;
    options.timeout_ms = OPENING_MS;
    must(torus_group_open(&options, &group, &error));
    torus_group_set_timeout(group, 0);
    *rank = (int)torus_group_rank(group);
    *ranks = (int)torus_group_size(group);
}

/* The end of this program makes the group fail on all other nodes. */
void library_abort(void)
{
    _exit(1);
}

void library_end(void)
{
    must(torus_barrier(group, &error));
    torus_group_close(group);
    exit(0);
}

void library_prepare(const char *variable, int value)
{
    (void)value;
    if (variable != NULL)
        give_up("libtorus has no control variables");
}

void library_finish(void)
{
}

void *library_new(size_t bytes, bool registered)
{
    void *memory = registered ? torus_memory_new(group, bytes, &error) : calloc(1, bytes);

    if (memory == NULL)
        give_up(registered ? error.text : "out of memory");
    return memory;
}

void library_free(void *area, size_t bytes, bool registered)
{
    (void)bytes;
    if (registered)
        torus_memory_free(group, area);
    else
        free(area);
}

void library_barrier(void)
{
    must(torus_barrier(group, &error));
}

void library_alltoall(const void *send, void *receive, size_t block)
{
    must(torus_alltoall(group, send, receive, block, &error));
}

void library_allgather(const void *send, void *receive, size_t block)
{
    must(torus_allgather(group, send, receive, block, &error));
}

void library_broadcast(void *buffer, size_t bytes)
{
    must(torus_broadcast(group, buffer, bytes, 0, &error));
}

void library_allreduce(const double *send, double *receive, size_t count)
{
    must(torus_allreduce(group, send, receive, count, TORUS_FLOAT64, TORUS_SUM, &error));
}

void library_largest(double *values, size_t count)
{
    must(torus_allreduce(group, TORUS_IN_PLACE, values, count, TORUS_FLOAT64, TORUS_MAX, &error));
}

void library_sum(uint64_t *value)
{
    must(torus_allreduce(group, TORUS_IN_PLACE, value, 1, TORUS_UINT64, TORUS_SUM, &error));
}
