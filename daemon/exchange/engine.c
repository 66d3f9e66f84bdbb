#include "daemon/exchange/engine.h"

bool engine_data(const Peer__Head *head, struct engine_data *data)
{
    switch (head->kind_case) {
    case PEER__HEAD__KIND_STEPPED_DATA:
        *data = (struct engine_data){head->stepped_data->exchange, head->stepped_data->round};
        return true;
    case PEER__HEAD__KIND_STREAMED_DATA:
        *data = (struct engine_data){head->streamed_data->exchange, head->streamed_data->round};
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
