#include "daemon/exchange/engine.h"

int engine_fail(struct engine *engine, const struct error *e)
{
    if (engine->failure.code == ERROR_NONE)
        engine->failure = *e;
    return -1;
}

int engine_no_memory(struct engine *engine)
{
    struct error e;
    (void)error_set(&e, ERROR_MEMORY, "no memory for blocks on their way");
    return engine_fail(engine, &e);
}

uint64_t engine_offset(const struct engine *engine, uint64_t round)
{
    return (engine->rounds > 0 ? round % engine->rounds : round) * engine->set.segment_bytes;
}

uint32_t engine_part(const struct engine *engine, uint64_t size, uint64_t round)
{
    uint64_t most = engine->set.segment_bytes, before = engine_offset(engine, round);

    if (size <= before)
        return 0;
    return size - before < most ? (uint32_t)(size - before) : (uint32_t)most;
}
