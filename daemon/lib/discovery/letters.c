#include <stdlib.h>
#include <string.h>

#include "daemon/lib/discovery/internal.h"
#include "proto/borrowed.h"

/* How many chunks so many bytes make. */
static uint32_t blob_chunks(size_t size)
{
    return (uint32_t)((size + BLOB_CHUNK - 1) / BLOB_CHUNK);
}

/* Returns the length of a chunk. */
static size_t blob_chunk_size(size_t size, uint32_t index)
{
    size_t begin = (size_t)index * BLOB_CHUNK;

    return size - begin < BLOB_CHUNK ? size - begin : BLOB_CHUNK;
}

/* Allocates the bytes when the first chunk arrives. Returns whether there is a blob of this size. */
static bool begin(struct blob *b, size_t size)
{
    if (b->bytes != NULL)
        return b->size == size;
    if (size == 0 || size > BLOB_MOST)
        return false;
    b->bytes = malloc(size);
    if (b->bytes == NULL)
        return false;
    b->size = size;
    b->chunks = b->missing = blob_chunks(size);
    return true;
}

/* Adds a chunk of a blob of `size` bytes. Chunks that do not fit are ignored. */
static void blob_add(struct blob *b, size_t size, uint32_t index, const uint8_t *bytes,
                     size_t length)
{
    if (!begin(b, size) || index >= b->chunks || b->have[index] ||
        length != blob_chunk_size(size, index))
        return;
    memcpy(b->bytes + (size_t)index * BLOB_CHUNK, bytes, length);
    b->have[index] = true;
    b->missing--;
    if (b->awaited > 0)
        b->awaited--;
}

/* Lists up to BLOB_WINDOW missing chunks, and counts them as awaited. Returns their number. */
static uint32_t blob_ask(struct blob *b, uint32_t list[BLOB_WINDOW])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < b->chunks && count < BLOB_WINDOW; i++)
        if (!b->have[i])
            list[count++] = i;
    b->awaited = count;
    return count;
}

void blob_free(struct blob *b)
{
    free(b->bytes);
    *b = (struct blob){0};
}

#define LETTER_MOST 2048u /* bytes of a packed letter */
#define SPARE_HOPS 8u     /* routes may change while a letter is on its way */

void letter_begin(const struct discovery *d, Discovery__Letter *letter, const struct host_id *to,
                  const uint8_t setup[SETUP_ID_SIZE])
{
    discovery__letter__init(letter);
    letter->from = borrowed(d->own.host.bytes, HOST_ID_SIZE);
    letter->to = borrowed(to->bytes, HOST_ID_SIZE);
    letter->setup = borrowed(setup, SETUP_ID_SIZE);
}

void letter_pass_on(struct discovery *d, Discovery__Relay *relay)
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
        relay->hops = 2 * h->distance + SPARE_HOPS; /* the letter is this host's own */
    packet.kind_case = DISCOVERY__PACKET__KIND_RELAY;
    packet.relay = relay;
    packet_send(d, interface, &next->address, &packet);
}

void letter_send(struct discovery *d, const Discovery__Letter *letter)
{
    Discovery__Relay relay = DISCOVERY__RELAY__INIT;
    Discovery__Signed s;
    struct signed_parts parts;
    uint8_t content[LETTER_MOST];
    size_t size = discovery__letter__get_packed_size(letter);

    if (size > sizeof content)
        return; /* texts and chunks are shorter */
    (void)discovery__letter__pack(letter, content);
    signing_sign(&d->identity, &d->secrets, SIGNED_LETTER, content, size, &parts, &s);
    relay.to = letter->to;
    relay.letter = &s;
    letter_pass_on(d, &relay);
}

static void send_chunk(struct discovery *d, const struct host_id *to,
                       const uint8_t setup[SETUP_ID_SIZE], const uint8_t *bytes, size_t size,
                       uint32_t index)
{
    Discovery__Letter letter;
    Discovery__Chunk chunk = DISCOVERY__CHUNK__INIT;

    if (index >= blob_chunks(size))
        return;
    letter_begin(d, &letter, to, setup);
    chunk.index = index;
    chunk.size = (uint32_t)size;
    chunk.bytes = borrowed(bytes + (size_t)index * BLOB_CHUNK, blob_chunk_size(size, index));
    letter.kind_case = DISCOVERY__LETTER__KIND_CHUNK;
    letter.chunk = &chunk;
    letter_send(d, &letter);
}

void letter_send_chunks(struct discovery *d, const struct host_id *to,
                        const uint8_t setup[SETUP_ID_SIZE], const uint8_t *bytes, size_t size,
                        const Discovery__Missing *missing)
{
    for (size_t i = 0; i < missing->n_chunks && i < BLOB_WINDOW; i++)
        send_chunk(d, to, setup, bytes, size, missing->chunks[i]);
}

void letter_send_first(struct discovery *d, const struct host_id *to,
                       const uint8_t setup[SETUP_ID_SIZE], const uint8_t *bytes, size_t size)
{
    for (uint32_t i = 0; i < BLOB_FIRST; i++)
        send_chunk(d, to, setup, bytes, size, i);
}

void letter_send_missing(struct discovery *d, const struct host_id *to,
                         const uint8_t setup[SETUP_ID_SIZE], struct blob *b)
{
    Discovery__Letter letter;
    Discovery__Missing missing = DISCOVERY__MISSING__INIT;
    uint32_t list[BLOB_WINDOW];

    missing.n_chunks = blob_ask(b, list);
    missing.chunks = list;
    if (missing.n_chunks == 0)
        return;
    letter_begin(d, &letter, to, setup);
    letter.kind_case = DISCOVERY__LETTER__KIND_MISSING;
    letter.missing = &missing;
    letter_send(d, &letter);
}

bool letter_take_chunk(struct discovery *d, const struct host_id *from,
                       const uint8_t setup[SETUP_ID_SIZE], struct blob *b,
                       const Discovery__Chunk *chunk)
{
    const bool first = b->bytes == NULL;

    blob_add(b, chunk->size, chunk->index, chunk->bytes.data, chunk->bytes.len);
    if (b->bytes == NULL)
        return false;
    if (first) /* the others of the first chunks are on their way */
        b->awaited = (b->chunks < BLOB_FIRST ? b->chunks : BLOB_FIRST) - 1;
    if (b->missing > 0 && b->awaited == 0)
        letter_send_missing(d, from, setup, b);
    return b->missing == 0;
}
