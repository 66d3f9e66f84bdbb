#include <inttypes.h>
#include <stdlib.h>

#include "client/cli/schedule_files/msccl_program.h"

/* The receiving end of a connection. */
struct end {
    uint32_t gpu, from, channel;
    uint32_t block; /* index of the thread block */
};

static int compare_ends(const void *a, const void *b)
{
    const struct end *x = a, *y = b;

    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->channel > y->channel) - (x->channel < y->channel);
}

/* Rejects two thread blocks at one end of a connection: the order in which chunks arrive would depend on their
 * speed. */
static int refuse_shared(const struct msccl_block *b, const struct msccl_block *other, bool sends,
                         struct error *e)
{
    if (b->line < other->line) {
        const struct msccl_block *first = b;
        b = other;
        other = first;
    }
    return error_set(e, ERROR_REFUSED,
                     "line %" PRIu32 ": GPU %" PRIu32 ", thread block %" PRIu32 " %s GPU %" PRId32
                     " on channel %" PRIu32 ", as thread block %" PRIu32 " (line %" PRIu32
                     ") does: it needs another channel",
                     b->line, b->gpu, b->id, sends ? "sends to" : "receives from",
                     sends ? b->send : b->receive, b->channel, other->id, other->line);
}

/* Stores all receiving ends, sorted. */
static int find_ends(const struct msccl_program *p, struct end *end, uint32_t *count,
                     struct error *e)
{
    *count = 0;
    for (uint32_t i = 0; i < p->blocks; i++) {
        const struct msccl_block *b = &p->block[i];
        if (b->receives)
            end[(*count)++] = (struct end){b->gpu, (uint32_t)b->receive, b->channel, i};
    }
    qsort(end, *count, sizeof *end, compare_ends);
    for (uint32_t i = 1; i < *count; i++)
        if (compare_ends(&end[i - 1], &end[i]) == 0)
            return refuse_shared(&p->block[end[i - 1].block], &p->block[end[i].block], false, e);
    return 0;
}

/* Finds the receiver of a thread block. source[] has, for each end, the block that sends to it, or MSCCL_NONE. */
static int connect_block(const struct msccl_program *p, uint32_t index, const struct end *ends,
                         uint32_t count, uint32_t *source, uint32_t *target, struct error *e)
{
    const struct msccl_block *b = &p->block[index];
    const struct end key = {(uint32_t)b->send, b->gpu, b->channel, 0};
    const struct end *end = bsearch(&key, ends, count, sizeof *ends, compare_ends);

    if (end == NULL)
        return error_set(e, ERROR_REFUSED,
                         "line %" PRIu32 ": GPU %" PRIu32 ", thread block %" PRIu32
                         " sends to GPU %" PRId32 " on channel %" PRIu32
                         ", where no thread block receives from it",
                         b->line, b->gpu, b->id, b->send, b->channel);
    if (source[end - ends] != MSCCL_NONE)
        return refuse_shared(b, &p->block[source[end - ends]], true, e);
    source[end - ends] = index;
    *target = end->block;
    return 0;
}

static int check_dependency(const struct msccl_program *p, const struct msccl_step *s,
                            struct error *e)
{
    const struct msccl_gpu *gpu = &p->gpu[p->block[s->block].gpu];

    if (s->depends_block < 0)
        return 0;
    if ((uint32_t)s->depends_block >= gpu->count)
        return msccl_bad_step(p, s, e,
                              "it depends on thread block %" PRId32 ", which does not exist",
                              s->depends_block);
    if (s->depends_step < 0 ||
        (uint32_t)s->depends_step >= p->block[gpu->first + (uint32_t)s->depends_block].count)
        return msccl_bad_step(p, s, e,
                              "it depends on thread block %" PRId32 ", step %" PRId32
                              ", which does not exist",
                              s->depends_block, s->depends_step);
    return 0;
}

int msccl_connect(const struct msccl_program *p, uint32_t **targets, struct error *e)
{
    size_t room = (size_t)p->blocks + 1; /* not 0 bytes: NULL means out of memory */
    uint32_t *target = reallocarray(NULL, room, sizeof *target);
    uint32_t *source = reallocarray(NULL, room, sizeof *source);
    struct end *end = reallocarray(NULL, room, sizeof *end);
    uint32_t ends = 0;
    int rc = target == NULL || source == NULL || end == NULL ? msccl_no_memory(e) : 0;

    if (rc == 0)
        rc = find_ends(p, end, &ends, e);
    for (uint32_t i = 0; i < p->blocks && rc == 0; i++)
        target[i] = source[i] = MSCCL_NONE;
    for (uint32_t i = 0; i < p->blocks && rc == 0; i++)
        if (p->block[i].sends)
            rc = connect_block(p, i, end, ends, source, &target[i], e);
    for (uint32_t i = 0; i < p->steps && rc == 0; i++)
        rc = check_dependency(p, &p->step[i], e);
    free(end);
    free(source);
    *targets = rc == 0 ? target : NULL;
    if (rc != 0)
        free(target);
    return rc;
}
