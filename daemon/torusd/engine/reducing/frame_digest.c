#include "daemon/torusd/engine/reducing/frame_digest.h"

#include <string.h>

#include "daemon/torusd/engine/digest.h"

/* The digest covers where a piece belongs, so that one piece cannot pass for another. */
static uint64_t frame_digest_seed(uint32_t exchange, uint32_t round, const uint32_t *piece,
                                  size_t pieces)
{
    uint64_t seed = (uint64_t)exchange << 32 | round;

    for (size_t i = 0; i < pieces; i++)
        seed = (seed ^ piece[i]) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    return seed;
}

static int fail_damaged_frame(struct reducing *s, unsigned port)
{
    const struct router *router = s->base.set.router;
    unsigned here = engine_port(&s->base, port);
    char name[TORUS_PORT_NAME_SIZE];
    struct error e;

    (void)error_set(&e, ERROR_DAMAGED,
                    "node %u received a damaged frame from node %u on port %s: its digest differs "
                    "from the digest of the sent bytes",
                    router_rank(router),
                    torus_neighbour(router_torus(router), router_rank(router), here),
                    torus_port_name(router_torus(router), router_rank(router), here, name));
    (void)error_blame_link(&e, router_rank(router), here);
    return engine_fail(&s->base, &e);
}

int reducing_add_digest(struct reducing *s, const struct peer_streamed_data *data,
                        struct outgoing *frame)
{
    uint8_t digest[DIGEST_SIZE];
    uint64_t seed = frame_digest_seed(data->exchange, data->round, data->pieces, data->n_pieces);

    digest_write(digest, digest_extents(&frame->body, frame->body_length, seed));
    if (extents_copy(&frame->body, &s->writer, router_pool(s->base.set.router), digest,
                     sizeof digest) != 0)
        return engine_no_memory(&s->base);
    frame->body_length += DIGEST_SIZE;
    return 0;
}

int reducing_check_digest(struct reducing *s, unsigned port, const struct peer_streamed_data *data,
                          const struct extents *body, uint32_t *length, struct error *e)
{
    struct extent_cursor cursor = {0};
    struct extent run;
    uint8_t sent[DIGEST_SIZE];

    if (s->options.unchecked)
        return 1;
    if (*length < DIGEST_SIZE)
        return error_set(e, ERROR_PROTOCOL, "a frame without a digest");
    *length -= DIGEST_SIZE;
    uint64_t seed = frame_digest_seed(data->exchange, data->round, data->pieces, data->n_pieces);
    uint64_t digest = digest_extents(body, *length, seed);
    for (uint32_t skip = *length; skip > 0;)
        skip -= extents_take(body, &cursor, skip, &run);
    for (uint32_t at = 0; at < DIGEST_SIZE; at += run.length) {
        (void)extents_take(body, &cursor, DIGEST_SIZE - at, &run);
        memcpy(sent + at, run.data, run.length);
    }
    if (digest_read(sent) == digest)
        return 1;
    (void)fail_damaged_frame(s, port);
    return 0;
}
