#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "client/cli/msccl_reader.h"

static int bad_step(const struct msccl_reader *r, const struct msccl_block *b,
                    const struct msccl_step *s, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static int bad_step(const struct msccl_reader *r, const struct msccl_block *b,
                    const struct msccl_step *s, const char *format, ...)
{
    char text[sizeof((struct error *)NULL)->text];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return error_set(r->e, ERROR_REFUSED,
                     "line %" PRIu32 ": GPU %" PRIu32 ", thread block %" PRIu32 ", step %" PRIu32
                     ": %s",
                     s->line, b->gpu, b->id, (uint32_t)(s - r->step) - b->first, text);
}

/* Finds the other end of each connection. */
static int connect_blocks(struct msccl_reader *r)
{
    for (size_t i = 0; i < r->blocks; i++) {
        struct msccl_block *b = &r->block[i];
        if (b->send < 0)
            continue;
        const struct msccl_gpu *peer = &r->gpu[b->send];
        for (uint32_t k = peer->first; k < peer->first + peer->count && b->target == MSCCL_NONE;
             k++)
            if (r->block[k].receive == b->gpu && r->block[k].channel == b->channel)
                b->target = k;
        if (b->target == MSCCL_NONE && b->count > 0)
            return error_set(r->e, ERROR_REFUSED,
                             "GPU %" PRIu32 ", thread block %" PRIu32 " sends to GPU %" PRId64
                             " on channel %" PRId64 ", where no thread block receives from it",
                             b->gpu, b->id, b->send, b->channel);
    }
    return 0;
}

/* The leg from one node to another, as msccl.h says. */
static int find_leg(const struct msccl_reader *r, const struct msccl_block *b,
                    const struct msccl_step *s, struct leg *leg)
{
    const struct torus *t = r->torus;
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], hops = 0;
    unsigned channel = (unsigned)b->channel, dim = t->dims;
    char dims[TORUS_TEXT_SIZE];
    int direction = channel % 2 == 0 ? 1 : -1;

    torus_coordinates(t, b->gpu, from);
    torus_coordinates(t, (uint32_t)b->send, to);
    for (unsigned i = 0; i < t->dims; i++) {
        if (from[i] == to[i])
            continue;
        if (dim != t->dims)
            return bad_step(r, b, s, "GPU %" PRId64 " is not in a straight line from it on %s",
                            b->send, torus_format(t, dims));
        dim = i;
    }
    if (!r->own || channel >= torus_ports(t)) {
        hops = torus_shortest(t, dim, from[dim], to[dim], &direction);
    } else {
        direction = torus_port_direction(channel);
        while (++hops < t->size[dim] &&
               torus_walk(t, b->gpu, torus_port_dim(channel), direction, hops) != (uint32_t)b->send)
            continue;
        if (torus_port_dim(channel) != dim || hops == t->size[dim])
            return bad_step(r, b, s, "port %u does not lead to GPU %" PRId64, channel, b->send);
    }
    if (hops > UINT16_MAX)
        return bad_step(r, b, s, "%" PRIu32 " hops are more than a leg can have", hops);
    *leg =
        (struct leg){.hops = (uint16_t)hops, .dim = (uint8_t)dim, .direction = (int8_t)direction};
    return 0;
}

static struct msccl_cell *cells(const struct msccl_reader *r, const struct msccl_block *b,
                                const struct msccl_place *place)
{
    return &r->gpu[b->gpu].buffer[place->buffer][place->at];
}

static int send_chunks(struct msccl_reader *r, struct msccl_block *b, struct msccl_step *s,
                       const struct msccl_cell *from)
{
    struct msccl_block *target = &r->block[b->target];
    struct leg leg = {0};
    uint32_t level = s->level;

    if (find_leg(r, b, s, &leg) != 0)
        return -1;
    for (uint32_t i = 0; i < s->count; i++)
        level = from[i].level > level ? from[i].level : level;
    leg.step = s->number != MSCCL_NONE ? s->number : level;
    s->level = level;
    for (uint32_t i = 0; i < s->count; i++) {
        if (from[i].chunk == MSCCL_NONE)
            return bad_step(r, b, s, "it sends chunk %" PRIu32 " of a buffer, which is empty",
                            s->from.at + i);
        if (msccl_grow(&r->hop, r->hops, &r->hop_room, sizeof *r->hop) != 0 ||
            msccl_grow(&target->queue, target->queued, &target->room, sizeof *target->queue) != 0)
            return msccl_no_memory(r);
        r->hop[r->hops] = (struct msccl_hop){.before = from[i].hop,
                                             .from = b->gpu,
                                             .leg = leg,
                                             .chunk = from[i].chunk,
                                             .line = s->line};
        target->queue[target->queued++] =
            (struct msccl_cell){from[i].chunk, (uint32_t)r->hops++, level + 1};
    }
    return 0;
}

static int put(const struct msccl_reader *r, const struct msccl_block *b,
               const struct msccl_step *s, const struct msccl_cell *from, struct msccl_cell *to,
               uint32_t at)
{
    char name[MSCCL_CHUNK_NAME_SIZE];

    if (s->to.buffer == MSCCL_OUTPUT && to->chunk != MSCCL_NONE)
        return bad_step(r, b, s, "%s comes to chunk %" PRIu32 " of the output, which is full",
                        msccl_chunk_name(r, from->chunk, name), at);
    *to = *from;
    return 0;
}

/* Returns 1: it is done; 0: it has to wait; -1 having failed. */
static int run_step(struct msccl_reader *r, struct msccl_block *b, struct msccl_step *s)
{
    bool receives = s->kind == MSCCL_RECEIVE || s->kind == MSCCL_RECEIVE_COPY_SEND;
    uint32_t level = b->level;

    if (s->depends_block >= 0) {
        const struct msccl_gpu *gpu = &r->gpu[b->gpu];
        if (s->depends_block >= gpu->count)
            return bad_step(r, b, s, "it depends on thread block %" PRId64 ", which does not exist",
                            s->depends_block);
        const struct msccl_block *other = &r->block[gpu->first + (uint32_t)s->depends_block];
        if (s->depends_step < 0 || s->depends_step >= other->count)
            return bad_step(r, b, s, "it depends on step %" PRId64 ", which does not exist",
                            s->depends_step);
        if (other->done <= s->depends_step)
            return 0;
        uint32_t after = r->step[other->first + (uint32_t)s->depends_step].level;
        level = after > level ? after : level;
    }
    if (receives && b->queued - b->taken < s->count)
        return 0;
    s->level = level;
    for (uint32_t i = 0; receives && i < s->count; i++) {
        const struct msccl_cell *from = &b->queue[b->taken++];
        if (put(r, b, s, from, cells(r, b, &s->to) + i, s->to.at + i) != 0)
            return -1;
        s->level = from->level > s->level ? from->level : s->level;
    }
    for (uint32_t i = 0; s->kind == MSCCL_COPY && i < s->count; i++) {
        const struct msccl_cell from = cells(r, b, &s->from)[i];
        if (from.chunk != MSCCL_NONE &&
            put(r, b, s, &from, cells(r, b, &s->to) + i, s->to.at + i) != 0)
            return -1;
    }
    if (s->kind == MSCCL_SEND && send_chunks(r, b, s, cells(r, b, &s->from)) != 0)
        return -1;
    if (s->kind == MSCCL_RECEIVE_COPY_SEND && send_chunks(r, b, s, cells(r, b, &s->to)) != 0)
        return -1;
    b->level = s->level;
    return 1;
}

int msccl_run(struct msccl_reader *r)
{
    bool moved = true;

    if (connect_blocks(r) != 0)
        return -1;
    while (moved) {
        moved = false;
        for (size_t i = 0; i < r->blocks; i++) {
            struct msccl_block *b = &r->block[i];
            int done = 1;
            while (b->done < b->count &&
                   (done = run_step(r, b, &r->step[b->first + b->done])) > 0) {
                b->done++;
                moved = true;
            }
            if (done < 0)
                return -1;
        }
    }
    for (size_t i = 0; i < r->blocks; i++) {
        const struct msccl_block *b = &r->block[i];
        if (b->done < b->count)
            return bad_step(r, b, &r->step[b->first + b->done], "it waits for ever");
        if (b->taken < b->queued && b->count > 0)
            return bad_step(r, b, &r->step[b->first + b->count - 1],
                            "after it, something comes from GPU %" PRId64 " that is never received",
                            b->receive);
    }
    return 0;
}
