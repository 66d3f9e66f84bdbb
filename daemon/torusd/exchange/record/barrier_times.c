/* When the clients of all nodes entered a barrier. */
#include "daemon/torusd/exchange/record/barrier_times.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/exchange/record/avoided.h"
#include "daemon/torusd/exchange/record/job.h"
#include "proto/elapsed.h"

#define ARRIVAL_UNKNOWN UINT64_MAX
#define MICROSECONDS 1000u /* nanoseconds in one */
/* What `go` says at most, because a false time may be any number. */
#define LATEST (SPEC_LONGEST_TIMEOUT / MICROSECONDS)
/* A list of more nodes may be longer than a head: a rank takes at most 3 bytes, and a time at most 8. */
#define NODES_MOST (FRAME_MAX_HEAD / 16u)

/* Allocates the times of all nodes. Returns false if there is no memory: the times then stay unknown. */
static bool have_room(struct attempt *x)
{
    struct barrier_times *a = &x->barrier_times;
    const size_t bytes = torus_of(x)->nodes * sizeof *a->at;

    if (a->at == NULL && (a->at = malloc(bytes)) != NULL)
        (void)memset(a->at, 0xff, bytes);
    return a->at != NULL;
}

/* Notes when the client of this node entered. Returns false if that is not known, or is not to be told. */
static bool note_own(struct attempt *x)
{
    if (!kind_of(x)->tells_arrivals || x->job == NULL || torus_of(x)->nodes > NODES_MOST ||
        router_least_minor(router_of(x)) < ARRIVALS_MINOR || !have_room(x))
        return false;
    x->barrier_times.at[rank_of(x)] = x->job->began;
    return true;
}

uint64_t *barrier_times_below(struct attempt *x, size_t *count)
{
    const uint64_t now = router_now(router_of(x));
    const uint32_t nodes = torus_of(x)->nodes;
    uint64_t *list;
    uint32_t known = 0;

    *count = 0;
    if (!note_own(x))
        return NULL;
    for (uint32_t rank = 0; rank < nodes; rank++)
        known += x->barrier_times.at[rank] != ARRIVAL_UNKNOWN;
    list = calloc(known, 2 * sizeof *list);
    for (uint32_t rank = 0; list != NULL && rank < nodes; rank++) {
        if (x->barrier_times.at[rank] == ARRIVAL_UNKNOWN)
            continue;
        list[(*count)++] = rank;
        list[(*count)++] = elapsed(x->barrier_times.at[rank], now) / MICROSECONDS;
    }
    return list;
}

int barrier_times_add_child(struct attempt *x, unsigned port, const uint64_t *list, size_t count,
                            struct error *e)
{
    const uint64_t now = router_now(router_of(x));

    if (count == 0 || !kind_of(x)->tells_arrivals || !have_room(x))
        return 0;
    if (count % 2 != 0)
        return error_set(e, ERROR_PROTOCOL, "exchange %s: arrivals of %zu numbers", x->id.text,
                         count);
    for (size_t i = 0; i < count; i += 2) {
        const uint64_t rank = list[i], ago = list[i + 1];
        if (rank >= torus_of(x)->nodes || avoided_branch(x, (uint32_t)rank) != (int)port ||
            x->barrier_times.at[rank] != ARRIVAL_UNKNOWN)
            return error_set(e, ERROR_PROTOCOL,
                             "exchange %s: arrival of node %llu, for a second time or from the "
                             "wrong neighbour",
                             x->id.text, (unsigned long long)rank);
        x->barrier_times.at[rank] = ago < now / MICROSECONDS ? now - ago * MICROSECONDS : 0;
    }
    return 0;
}

/* Allocates the lists that `go` fills, with an entry for each of `nodes`. Returns false if there is no memory. */
static bool allocate(struct barrier_times *a, size_t nodes)
{
    a->told = calloc(nodes + 1, 2 * sizeof *a->told);
    a->all = calloc(nodes + 1, sizeof *a->all);
    if (a->told != NULL && a->all != NULL)
        return true;
    barrier_times_free(a);
    return false;
}

static void keep(struct barrier_times *a, uint32_t rank, uint64_t after_us)
{
    a->all[a->n_told / 2] =
        (struct exchange_arrival){.rank = rank, .after_ns = after_us * MICROSECONDS};
    a->told[a->n_told++] = rank;
    a->told[a->n_told++] = after_us;
}

void barrier_times_compare(struct attempt *x)
{
    struct barrier_times *a = &x->barrier_times;
    const uint32_t nodes = torus_of(x)->nodes;
    uint64_t first = ARRIVAL_UNKNOWN;

    if (!note_own(x) || !allocate(a, nodes))
        return;
    for (uint32_t rank = 0; rank < nodes; rank++)
        first = a->at[rank] < first ? a->at[rank] : first;
    for (uint32_t rank = 0; rank < nodes; rank++) {
        const uint64_t after_us = (a->at[rank] - first) / MICROSECONDS;
        if (a->at[rank] != ARRIVAL_UNKNOWN)
            keep(a, rank, after_us < LATEST ? after_us : LATEST);
    }
}

int barrier_times_set(struct attempt *x, const uint64_t *list, size_t count, struct error *e)
{
    struct barrier_times *a = &x->barrier_times;

    if (count == 0 || !kind_of(x)->tells_arrivals)
        return 0;
    for (size_t i = 0; i < count; i += 2)
        if (count % 2 != 0 || list[i] >= torus_of(x)->nodes || (i > 0 && list[i] <= list[i - 2]) ||
            list[i + 1] > LATEST)
            return error_set(e, ERROR_PROTOCOL, "exchange %s: invalid arrivals in \"go\"",
                             x->id.text);
    if (!allocate(a, count / 2))
        return 0;
    for (size_t i = 0; i < count; i += 2)
        keep(a, (uint32_t)list[i], list[i + 1]);
    return 0;
}

void barrier_times_go(struct attempt *x)
{
    if (kind_of(x)->tells_arrivals && x->job != NULL)
        x->barrier_times.waited_ns = elapsed(x->job->began, router_now(router_of(x)));
}

void barrier_times_free(struct barrier_times *a)
{
    free(a->at);
    free(a->told);
    free(a->all);
    *a = (struct barrier_times){0};
}
