#include "daemon/torusd/engine/round_window.h"

#include <stdlib.h>

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
