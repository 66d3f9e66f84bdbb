/* The frame decoder: however a stream is cut, it must give the same frames and the same end. Input: a byte for the
 * size of the pieces, then the stream, without the checks of heads: they are added to whatever could be a frame. */
#include <string.h>

#include "daemon/torusd/router/decoder.h"
#include "daemon/torusd/router/outgoing.h"
#include "tests/fuzz/fuzz.h"

struct seen {
    uint64_t frames, hash;
    int result;
};

static int on_frame(void *context, const struct peer_message *message, const struct extents *body,
                    uint32_t body_length, struct error *e)
{
    struct seen *seen = context;
    uint32_t length = 0;

    seen->frames++;
    seen->hash = seen->hash * 31 + (uint64_t)message->kind;
    for (uint32_t i = 0; i < body->count; i++)
        for (uint32_t k = 0; k < body->item[i].length; k++, length++)
            seen->hash = seen->hash * 31 + body->item[i].data[k];
    REQUIRE(length == body_length);
    if (message->kind == PEER_STEPPED_DATA)
        for (size_t i = 0; i < message->stepped_data.n_sizes; i++)
            seen->hash = seen->hash * 31 + message->stepped_data.sizes[i];
    if (message->kind == PEER_STREAMED_DATA)
        for (size_t i = 0; i < message->streamed_data.n_pieces; i++)
            seen->hash = seen->hash * 31 + message->streamed_data.pieces[i];
    return 0;
}

static struct seen feed(const uint8_t *data, size_t size, size_t piece, uint32_t max_head)
{
    struct slab_pool pool;
    struct decoder d;
    struct seen seen = {0};

    slab_pool_init(&pool, 0);
    decoder_init(&d, max_head, 1000);
    while (size > 0 && seen.result == 0) {
        struct slab *slab = slab_get(&pool);
        struct error e;
        size_t n = piece < size ? piece : size;
        memcpy(slab->data, data, n);
        seen.result = decoder_feed(&d, slab, slab->data, n, on_frame, &seen, &e);
        slab_unref(slab);
        data += n;
        size -= n;
    }
    decoder_free(&d);
    REQUIRE(slab_pool_close(&pool) == 0);
    return seen;
}

/* Returns the length of `out`, which has room for SLAB_SIZE bytes. */
static size_t add_checks(const uint8_t *in, size_t size, uint8_t *out)
{
    size_t length = 0, n;
    struct frame_prefix prefix;

    while (size > FRAME_PREFIX_SIZE &&
           frame_prefix_read(in, (uint32_t)size, FRAME_MAX_BODY, &prefix, NULL) == 0 &&
           size - FRAME_PREFIX_SIZE >= prefix.head &&
           length + FRAME_PREFIX_SIZE + prefix.head + HEAD_CHECK_SIZE + prefix.body < SLAB_SIZE) {
        memcpy(out + length + FRAME_PREFIX_SIZE, in + FRAME_PREFIX_SIZE, prefix.head);
        length += head_check_write(out + length, prefix.head, prefix.body);
        in += FRAME_PREFIX_SIZE + prefix.head;
        size -= FRAME_PREFIX_SIZE + prefix.head;
        n = prefix.body < size ? prefix.body : size;
        memcpy(out + length, in, n);
        length += n;
        in += n;
        size -= n;
    }
    n = size < SLAB_SIZE - length ? size : SLAB_SIZE - length;
    memcpy(out + length, in, n);
    return length + n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    size_t piece = 1u + input_byte(&in);
    uint32_t max_head = piece % 2 == 0 ? 512 : 100000;

    static uint8_t stream[SLAB_SIZE];
    size_t length = add_checks(in.data, in.size, stream);
    struct seen whole = feed(stream, length, SLAB_SIZE, max_head);
    struct seen pieces = feed(stream, length, piece, max_head);
    REQUIRE(whole.result == pieces.result);
    REQUIRE(whole.frames == pieces.frames);
    REQUIRE(whole.hash == pieces.hash);
    return 0;
}
