#include "daemon/torusd/engine/engine.h"
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
