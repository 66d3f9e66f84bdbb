#include "daemon/torusd/engine/streaming.h"

#include <stdlib.h>

#include "daemon/torusd/engine/streaming/progress.h"
#include "daemon/torusd/engine/streaming/receiving.h"
#include "daemon/torusd/engine/streaming/rounds.h"
#include "daemon/torusd/engine/streaming/sending.h"

#define FILL_LEAST (16u * 1024u)
#define FILL_LEAST_OF_ONE (4u * 1024u) /* a broadcast, where relays have nothing else to send */
#define FILL_MOST (60u * 1024u)
#define FILLS_A_CHANNEL 64u /* so many frames per channel and round keep relays busy */

_Static_assert(FRAME_BUFFER_FRAME_MOST(FILL_MOST) <= FRAME_MAX_BODY,
               "the longest frame can be relayed");

static void streaming_admit(struct engine *engine, uint64_t number)
{
    struct streaming *s = streaming_of(engine);
    struct streaming_round *r = streaming_open_round(s, number);

    if (r == NULL)
        return;
    r->base.admitted = true;
    for (uint32_t i = 0; i < s->passages->count; i++) {
        const struct passage *p = &s->passages->passage[i];
        if (p->in == PASSAGE_HERE && !(s->base.set.uniform && r->flow[i].length == 0))
            streaming_enqueue(s, r, i);
    }
    for (unsigned port = 0; port < s->ports; port++)
        if (queues_peek(&r->queues, port) != QUEUES_NONE)
            engine_wake_port(&s->base, port);
    streaming_finish_rounds(s);
}

static int streaming_clear(struct engine *engine, unsigned port, const struct peer_clear *clear,
                           struct error *e)
{
    (void)engine, (void)port, (void)clear;
    return error_set(e, ERROR_PROTOCOL, "a clear, but the exchange does not run in steps");
}

static void streaming_free(struct engine *engine)
{
    struct streaming *s = streaming_of(engine);

    for (uint32_t i = 0; i < engine->set.window; i++)
        streaming_free_round(round_window_slot(&s->window, i));
    frame_buffer_close(&s->buffer);
    free(s->verified_end);
    round_window_free(&s->window);
    free(s);
}

/* Returns up to how many bytes frames are filled: few compared with what a channel carries in a round, so
 * that relays can start early; but at most as many as a frame may have. */
static uint32_t choose_frame_fill(const struct streaming *s)
{
    const struct engine_setup *set = &s->base.set;
    uint64_t most = 0;

    for (unsigned port = 0; port < s->ports; port++)
        if (s->passages->departures[port] > most)
            most = s->passages->departures[port];
    uint32_t least = s->passages->source != TORUS_NO_NODE ? FILL_LEAST_OF_ONE : FILL_LEAST;
    most = most * (set->round_bytes / set->segments + 1) / FILLS_A_CHANNEL;
    return most < least ? least : most > FILL_MOST ? FILL_MOST : (uint32_t)most;
}

static const struct engine_ops streaming_ops = {
    .free = streaming_free,
    .admit = streaming_admit,
    .frame = streaming_frame,
    .clear = streaming_clear,
    .next = streaming_next,
    .wake = streaming_wake,
    .describe = streaming_describe,
    .arrived = streaming_arrived,
    .waits = streaming_waits,
};

struct engine *streaming_new(const struct engine_setup *setup, const struct passages *passages,
                             struct error *e)
{
    struct streaming *s = calloc(1, sizeof *s);

    if (s != NULL) {
        s->base.ops = &streaming_ops;
        s->base.set = *setup;
        s->passages = passages;
        s->ports = torus_ports(engine_torus(setup));
        s->cut = engine_cut(setup, STREAMING_LEAST_PIECE);
        frame_buffer_init(&s->buffer, &s->base, cut_longest(&s->cut));
        s->fill = choose_frame_fill(s);
        if (setup->digests)
            s->verified_end = calloc(engine_torus(setup)->nodes, sizeof *s->verified_end);
        if ((s->verified_end != NULL || !setup->digests) &&
            round_window_init(&s->window, &s->base, sizeof(struct streaming_round)) == 0)
            return &s->base;
        free(s->verified_end);
        free(s);
    }
    (void)error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    return NULL;
}
