#include "daemon/torusd/engine/streaming_progress.h"

#include <stdio.h>

#include "proto/text.h"

#define NONE UINT32_MAX

void streaming_describe(const struct engine *engine, char *text, size_t size)
{
    const struct streaming *s = (const struct streaming *)engine;
    const struct streaming_round *r = round_window_find(&s->window, engine->rounds_finished);
    char name[TORUS_PORT_NAME_SIZE];
    uint32_t waiting = 0, first = NONE;

    if (r == NULL || r->base.left == 0) {
        const char *state = "all sent and received";
        if (engine->set.sink->ops->pending(engine->set.sink) > 0)
            state = "writing received data";
        else if (r != NULL && !r->own.delivered)
            state = "reading its own block for itself";
        (void)snprintf(text, size, "%s", state);
        return;
    }
    for (uint32_t i = 0; i < s->passages->count; i++) {
        const struct streaming_flow *flow = &r->flow[i];
        if (s->passages->passage[i].in == PASSAGE_HERE || streaming_shares_piece(s, i) ||
            (flow->begun && flow->arrived == flow->length))
            continue;
        waiting++;
        if (first == NONE)
            first = i;
    }
    if (first == NONE)
        (void)snprintf(text, size, "still sending %llu %s", (unsigned long long)r->base.left,
                       text_plural(r->base.left, "piece", "pieces"));
    else
        (void)snprintf(
            text, size, "waiting for %u %s, the first one from node %u on port %s to node %u",
            waiting, text_plural(waiting, "piece", "pieces"), s->passages->passage[first].source,
            engine_port_name(engine, s->passages->passage[first].in, name),
            engine_neighbour(engine, s->passages->passage[first].in));
}

/* Returns how many bytes at the start of a block have arrived in finished rounds; the block may be shorter.
 * If pieces carry digests, only verified bytes count: the last piece of a block, or of every round, may be
 * too short for a digest. */
static uint64_t finished_bytes(const struct streaming *s, uint32_t origin, uint64_t most)
{
    const struct engine_setup *set = &s->base.set;
    uint64_t last = set->round_bytes % cut_round(&s->cut, 0).stride;
    uint64_t end = most;

    if (!set->digests)
        return most;
    if (origin == s->passages->rank)
        return most < set->source->ops->size(set->source, origin)
                   ? most
                   : set->source->ops->size(set->source, origin);
    if (s->verified_end[origin] < end)
        end = s->verified_end[origin];
    if (end > set->round_bytes && last > 0 && !piece_has_digest((uint32_t)last))
        end = set->round_bytes - last;
    return end;
}

void streaming_arrived(const struct engine *engine,
                       void (*tell)(void *context, uint32_t origin, uint64_t begin, uint64_t end),
                       void *context)
{
    const struct streaming *s = (const struct streaming *)engine;
    uint64_t whole = engine->rounds_finished * s->cut.round_bytes;

    if (engine->failure.code != ERROR_NONE && engine->failure.code != ERROR_DAMAGED)
        return; /* more bytes may have arrived than the sink has written */
    for (uint32_t origin = 0; whole > 0 && origin < engine_torus(&engine->set)->nodes; origin++)
        tell(context, origin, 0, finished_bytes(s, origin, whole));
    const struct streaming_round *r = round_window_next(&s->window, engine->rounds_finished);
    for (; r != NULL; r = round_window_next(&s->window, r->base.number + 1)) {
        tell(context, s->passages->rank, r->cut.begin, r->own.at);
        for (uint32_t k = 0; k < s->passages->count; k++) {
            const struct passage *p = &s->passages->passage[k];
            if (p->out == PASSAGE_HERE && (r->mark == NULL || r->flow[k].verified))
                tell(context, p->source, streaming_piece_begin(s, r, p),
                     streaming_piece_begin(s, r, p) + r->flow[k].arrived);
        }
    }
}

/* Why a piece does not leave, or does not leave completely. */
static enum engine_wait why_waits(const struct streaming *s, const struct streaming_round *r,
                                  uint32_t index)
{
    const struct passage *p = &s->passages->passage[index];
    const struct streaming_flow *flow = &r->flow[index];

    if (flow->begun && flow->sent == flow->length)
        return ENGINE_DONE;
    if (p->in == PASSAGE_HERE && !r->base.admitted)
        return ENGINE_ROUND;
    if (queues_has(&r->queues, index) && queues_peek(&r->queues, p->out) != QUEUES_NONE)
        return ENGINE_READY;
    return p->in == PASSAGE_HERE ? ENGINE_SOURCE : ENGINE_OTHERS;
}

/* Why a port waits that has sent everything of the admitted rounds. */
static enum engine_wait why_idle(const struct streaming *s)
{
    const struct engine *engine = &s->base;
    const struct streaming_round *r = round_window_find(&s->window, engine->rounds_finished);
    uint64_t last = engine->rounds_finished;

    if (r != NULL && r->base.left == 0 && engine->set.sink->ops->pending(engine->set.sink) > 0)
        return ENGINE_SINK;
    for (; r != NULL; r = round_window_next(&s->window, r->base.number + 1))
        if (r->base.admitted)
            last = r->base.number + 1;
    return last > 0 && engine_is_last_round(engine, last - 1) ? ENGINE_DONE : ENGINE_ROUND;
}

void streaming_waits(const struct engine *engine, enum engine_wait *port)
{
    const struct streaming *s = (const struct streaming *)engine;
    const struct streaming_round *r = round_window_next(&s->window, engine->rounds_finished);
    const enum engine_wait idle = why_idle(s);

    for (unsigned i = 0; i < s->ports; i++)
        port[i] = ENGINE_DONE;
    for (; r != NULL; r = round_window_next(&s->window, r->base.number + 1))
        for (uint32_t i = 0; i < s->passages->count; i++) {
            uint8_t out = s->passages->passage[i].out;
            if (out == PASSAGE_HERE || port[out] == ENGINE_READY) /* nothing comes before that */
                continue;
            enum engine_wait why = why_waits(s, r, i);
            if (why < port[out])
                port[out] = why;
        }
    for (unsigned i = 0; i < s->ports; i++)
        if (port[i] == ENGINE_DONE)
            port[i] = idle;
}
