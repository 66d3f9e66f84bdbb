#include "daemon/torusd/engine/engine.h"

#include <stdlib.h>

#include "daemon/torusd/engine/cut.h"
#include "proto/text.h"

#define SHORT_FRAME 64u /* bytes */
#define SHORT_FRAMES_LEAST 64u
#define BYTES_A_CRUMB 512u

bool engine_data(const struct peer_message *message, struct engine_data *data)
{
    switch (message->kind) {
    case PEER_STEPPED_DATA:
        *data = (struct engine_data){message->stepped_data.exchange, message->stepped_data.round};
        return true;
    case PEER_STREAMED_DATA:
        *data = (struct engine_data){message->streamed_data.exchange, message->streamed_data.round};
        return true;
    case PEER_GROUP_MESSAGE: /* is of no round */
        *data = (struct engine_data){message->group_message.exchange, 0};
        return true;
    default:
        return false;
    }
}

int engine_fail(struct engine *engine, const struct error *e)
{
    if (engine->failure.code == ERROR_NONE)
        engine->failure = *e;
    return -1;
}

int engine_no_memory(struct engine *engine)
{
    struct error e;
    (void)error_set(&e, ERROR_MEMORY, "out of memory for blocks in transit");
    return engine_fail(engine, &e);
}

int engine_count_short_frame(struct engine *engine, unsigned port, uint32_t length, struct error *e)
{
    const uint64_t most = SHORT_FRAMES_LEAST + engine->counts.port[port].rx_bytes / BYTES_A_CRUMB;

    if (length >= SHORT_FRAME || ++engine->short_frames[port] <= most)
        return 0;
    return error_set(
        e, ERROR_PROTOCOL,
        "too many short frames: %u %s of less than %u bytes each from the middle of pieces",
        engine->short_frames[port], text_plural(engine->short_frames[port], "frame", "frames"),
        SHORT_FRAME);
}

struct cut engine_cut(const struct engine_setup *setup, uint32_t least)
{
    return (struct cut){
        .uniform = setup->uniform,
        .block_bytes = setup->block_bytes,
        .round_bytes = setup->round_bytes,
        .segments = setup->segments,
        .least = least,
    };
}

void engine_waits(const struct engine *engine, enum engine_wait *port)
{
    for (unsigned i = 0; i < torus_ports(engine_torus(&engine->set)); i++)
        port[i] = ENGINE_OTHERS;
    if (engine->ops->waits != NULL)
        engine->ops->waits(engine, port);
}

/* --- the window of rounds --- */

int round_window_init(struct round_window *w, struct engine *engine, size_t size)
{
    *w = (struct round_window){.engine = engine, .size = size};
    w->slots = calloc(engine->set.window, size);
    return w->slots != NULL ? 0 : -1;
}

void round_window_free(struct round_window *w)
{
    free(w->slots);
    w->slots = NULL;
}

int round_window_number(const struct round_window *w, uint32_t named, uint64_t *number,
                        struct error *e)
{
    const uint64_t oldest = w->engine->rounds_finished;

    *number = oldest + ((named - oldest) & ENGINE_ROUND_MASK);
    if (named <= ENGINE_ROUND_MASK && *number < oldest + w->engine->set.window)
        return 0;
    return error_set(e, ERROR_PROTOCOL,
                     "data of round %u (modulo %u), but the oldest open round is %llu", named,
                     ENGINE_ROUND_MASK + 1, (unsigned long long)oldest);
}

bool round_window_end(const struct round_window *w)
{
    struct engine *engine = w->engine;
    struct window_round *r = round_window_find(w, engine->rounds_finished);
    struct sink *sink = engine->set.sink;

    if (engine_failed(engine) != NULL || r == NULL || !r->admitted || r->left > 0 ||
        engine->damaged_count > 0 || sink->ops->pending(sink) > 0)
        return false;
    engine->counts.delivered_at = router_now(engine->set.router);
    engine->counts.blocks_delivered = r->delivered;
    r->open = false;
    engine_note(engine, TRACE_FINISHED_ROUND, 0, engine->rounds_finished);
    engine->rounds_finished++;
    return true;
}

/* --- cutting --- */

struct cut_round cut_round(const struct cut *cut, uint64_t round)
{
    struct cut_round r = {.begin = round * cut->round_bytes, .bytes = cut->round_bytes};
    uint32_t whole = cut->uniform ? cut_whole(&r, cut->block_bytes) : cut->round_bytes;

    r.stride = whole / cut->segments + (whole % cut->segments != 0);
    if (cut->uniform && cut->segments > 1 && r.stride < cut->least)
        r.stride = cut->least;
    return r;
}

uint32_t cut_longest(const struct cut *cut)
{
    const struct cut_round first = cut_round(cut, 0); /* later rounds are not longer */

    return cut->uniform ? cut_length(&first, cut->block_bytes, 0) : first.stride;
}
