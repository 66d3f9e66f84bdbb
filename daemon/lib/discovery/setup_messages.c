#include <stdlib.h>
#include <string.h>

#include "daemon/lib/discovery/internal.h"
#include "proto/borrowed.h"

/* How many chunks that many bytes make. */
static uint32_t sealed_chunks(size_t size)
{
    return (uint32_t)((size + SEALED_CHUNK - 1) / SEALED_CHUNK);
}

/* Returns the length of a chunk. */
static size_t sealed_chunk_size(size_t size, uint32_t index)
{
    size_t begin = (size_t)index * SEALED_CHUNK;

    return size - begin < SEALED_CHUNK ? size - begin : SEALED_CHUNK;
}

/* Allocates the bytes when the first chunk arrives. Returns whether there is a sealed message of this size. */
static bool begin(struct sealed_message *b, size_t size)
{
    if (b->bytes != NULL)
        return b->size == size;
    if (size == 0 || size > SEALED_MOST)
        return false;
    b->bytes = malloc(size);
    if (b->bytes == NULL)
        return false;
    b->size = size;
    b->chunks = b->missing = sealed_chunks(size);
    return true;
}

/* Adds a chunk of a sealed message of `size` bytes. Chunks that do not fit are ignored. */
static void sealed_add(struct sealed_message *b, size_t size, uint32_t index, const uint8_t *bytes,
                       size_t length)
{
    if (!begin(b, size) || index >= b->chunks || b->have[index] ||
        length != sealed_chunk_size(size, index))
        return;
    memcpy(b->bytes + (size_t)index * SEALED_CHUNK, bytes, length);
    b->have[index] = true;
    b->missing--;
    if (b->awaited > 0)
        b->awaited--;
}

/* Lists up to SEALED_WINDOW missing chunks, and counts them as awaited. Returns their number. */
static uint32_t sealed_ask(struct sealed_message *b, uint32_t list[SEALED_WINDOW])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < b->chunks && count < SEALED_WINDOW; i++)
        if (!b->have[i])
            list[count++] = i;
    b->awaited = count;
    return count;
}

void sealed_message_free(struct sealed_message *b)
{
    free(b->bytes);
    *b = (struct sealed_message){0};
}

#define SETUP_MESSAGE_MOST 2048u /* bytes of a packed setup message */
#define SPARE_HOPS 8u            /* routes may change while a setup message is on its way */

void setup_message_begin(const struct discovery *d, Discovery__SetupMessage *setup_message,
                         const struct host_id *to, const uint8_t setup[SETUP_ID_SIZE])
{
    discovery__setup_message__init(setup_message);
    setup_message->from = borrowed(d->own.host.bytes, HOST_ID_SIZE);
    setup_message->to = borrowed(to->bytes, HOST_ID_SIZE);
    setup_message->setup = borrowed(setup, SETUP_ID_SIZE);
}

void setup_message_pass_on(struct discovery *d, Discovery__Relay *relay)
{
    Discovery__Packet packet = DISCOVERY__PACKET__INIT;
    const struct host_entry *h;
    const struct neighbour *next;
    struct host_id to;
    unsigned interface;

    (void)database_refresh(&d->database, discovery_now(d));
    if (!host_id_read(&to, relay->to.data, relay->to.len))
        return;
    h = database_find(&d->database, &to);
    if (h == NULL || !h->reachable || h->distance == 0)
        return;
    next = neighbours_find(d, h->gate_by, &h->gate, &interface);
    if (next == NULL)
        return;
    if (relay->hops == 0)
        relay->hops = 2 * h->distance + SPARE_HOPS; /* the setup message is this host's own */
    packet.kind_case = DISCOVERY__PACKET__KIND_RELAY;
    packet.relay = relay;
    packet_send(d, interface, &next->address, &packet);
}

void setup_message_send(struct discovery *d, const Discovery__SetupMessage *setup_message)
{
    Discovery__Relay relay = DISCOVERY__RELAY__INIT;
    Discovery__Signed s;
    struct signed_parts parts;
    uint8_t content[SETUP_MESSAGE_MOST];
    size_t size = discovery__setup_message__get_packed_size(setup_message);

    if (size > sizeof content)
        return; /* texts and chunks are shorter */
    (void)discovery__setup_message__pack(setup_message, content);
    signing_sign(&d->identity, &d->secrets, SIGNED_SETUP_MESSAGE, content, size, &parts, &s);
    relay.to = setup_message->to;
    relay.setup_message = &s;
    setup_message_pass_on(d, &relay);
}

static void send_chunk(struct discovery *d, const struct host_id *to,
                       const uint8_t setup[SETUP_ID_SIZE], const uint8_t *bytes, size_t size,
                       uint32_t index)
{
    Discovery__SetupMessage setup_message;
    Discovery__Chunk chunk = DISCOVERY__CHUNK__INIT;

    if (index >= sealed_chunks(size))
        return;
    setup_message_begin(d, &setup_message, to, setup);
    chunk.index = index;
    chunk.size = (uint32_t)size;
    chunk.bytes = borrowed(bytes + (size_t)index * SEALED_CHUNK, sealed_chunk_size(size, index));
    setup_message.kind_case = DISCOVERY__SETUP_MESSAGE__KIND_CHUNK;
    setup_message.chunk = &chunk;
    setup_message_send(d, &setup_message);
}

void setup_message_send_chunks(struct discovery *d, const struct host_id *to,
                               const uint8_t setup[SETUP_ID_SIZE], const uint8_t *bytes,
                               size_t size, const Discovery__Missing *missing)
{
    for (size_t i = 0; i < missing->n_chunks && i < SEALED_WINDOW; i++)
        send_chunk(d, to, setup, bytes, size, missing->chunks[i]);
}

void setup_message_send_first(struct discovery *d, const struct host_id *to,
                              const uint8_t setup[SETUP_ID_SIZE], const uint8_t *bytes, size_t size)
{
    for (uint32_t i = 0; i < SEALED_FIRST; i++)
        send_chunk(d, to, setup, bytes, size, i);
}

void setup_message_send_missing(struct discovery *d, const struct host_id *to,
                                const uint8_t setup[SETUP_ID_SIZE], struct sealed_message *b)
{
    Discovery__SetupMessage setup_message;
    Discovery__Missing missing = DISCOVERY__MISSING__INIT;
    uint32_t list[SEALED_WINDOW];

    missing.n_chunks = sealed_ask(b, list);
    missing.chunks = list;
    if (missing.n_chunks == 0)
        return;
    setup_message_begin(d, &setup_message, to, setup);
    setup_message.kind_case = DISCOVERY__SETUP_MESSAGE__KIND_MISSING;
    setup_message.missing = &missing;
    setup_message_send(d, &setup_message);
}

bool setup_message_take_chunk(struct discovery *d, const struct host_id *from,
                              const uint8_t setup[SETUP_ID_SIZE], struct sealed_message *b,
                              const Discovery__Chunk *chunk)
{
    const bool first = b->bytes == NULL;

    sealed_add(b, chunk->size, chunk->index, chunk->bytes.data, chunk->bytes.len);
    if (b->bytes == NULL)
        return false;
    if (first) /* the others of the first chunks are on their way */
        b->awaited = (b->chunks < SEALED_FIRST ? b->chunks : SEALED_FIRST) - 1;
    if (b->missing > 0 && b->awaited == 0)
        setup_message_send_missing(d, from, setup, b);
    return b->missing == 0;
}
