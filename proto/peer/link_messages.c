#include "proto/peer/codec.h"
#include "proto/unpack.h"

#define PROOF(NUMBER, TEXT, BYTES, LIST) BYTES(digest)
PEER_CODEC(proof, Proof, PROOF)

#define PROBE(NUMBER, TEXT, BYTES, LIST) BYTES(filler)
PEER_CODEC(probe, Probe, PROBE)

#define PROBE_ANSWERED(NUMBER, TEXT, BYTES, LIST) NUMBER(bytes)
PEER_CODEC(probe_answered, ProbeAnswered, PROBE_ANSWERED)

#define REFUSAL(NUMBER, TEXT, BYTES, LIST) TEXT(reason)
PEER_CODEC(refusal, Refusal, REFUSAL)

#define HEARTBEAT(NUMBER, TEXT, BYTES, LIST)                                                       \
    NUMBER(interval_ms) NUMBER(at) NUMBER(echo) NUMBER(held) BYTES(filler)
PEER_CODEC(heartbeat, Heartbeat, HEARTBEAT)

#define LINK_FAULT(NUMBER, TEXT, BYTES, LIST)                                                      \
    NUMBER(rank)                                                                                   \
    NUMBER(port)                                                                                   \
    NUMBER(boot)                                                                                   \
    NUMBER(number)                                                                                 \
    NUMBER(code) NUMBER(found_rank) NUMBER(found_port) NUMBER(left) NUMBER(sent) NUMBER(mtu)
PEER_CODEC(link_fault, LinkFault, LINK_FAULT)

/* --- link states --- */

#define ENTRY(NUMBER, TEXT, BYTES, LIST)                                                           \
    NUMBER(rank)                                                                                   \
    NUMBER(hops)                                                                                   \
    NUMBER(up)                                                                                     \
    NUMBER(boot)                                                                                   \
    NUMBER(version) NUMBER(minor) NUMBER(confirmed) NUMBER(forwards) NUMBER(quiet) LIST(rates)

static void write_entry(const struct peer_link_state_entry *m, Peer__LinkState__Entry *to)
{
    peer__link_state__entry__init(to);
    PEER_WRITE_FIELDS(ENTRY)
}

static void read_entry(const Peer__LinkState__Entry *from,
                       struct peer_link_state_entry *m){PEER_READ_FIELDS(ENTRY)}

PEER_WRITE(link_state, LinkState)
{
    Peer__LinkState__Entry **pointer;
    Peer__LinkState__Entry *entry;

    peer__link_state__init(to);
    if (m->n_entry == 0)
        return 0;
    scratch->owned = calloc(m->n_entry, sizeof(Peer__LinkState__Entry *) + sizeof *entry);
    if (scratch->owned == NULL)
        return -1;
    pointer = scratch->owned;
    entry = (Peer__LinkState__Entry *)(pointer + m->n_entry);
    for (size_t i = 0; i < m->n_entry; i++) {
        write_entry(&m->entry[i], &entry[i]);
        pointer[i] = &entry[i];
    }
    to->n_entry = m->n_entry;
    to->entry = pointer;
    return 0;
}

PEER_READ(link_state, LinkState)
{
    struct peer_link_state_entry *entry = NULL;

    if (from->n_entry > 0 && (entry = calloc(from->n_entry, sizeof *entry)) == NULL)
        return peer_no_memory(e);
    for (size_t i = 0; i < from->n_entry; i++)
        read_entry(from->entry[i], &entry[i]);
    *m = (struct peer_link_state){from->n_entry, entry};
    *owned = entry;
    return 0;
}

/* --- hello --- */

#define HELLO(NUMBER, TEXT, BYTES, LIST)                                                           \
    NUMBER(version)                                                                                \
    TEXT(dims)                                                                                     \
    NUMBER(rank)                                                                                   \
    NUMBER(port) NUMBER(boot) BYTES(challenge) NUMBER(encrypt) BYTES(ephemeral) NUMBER(minor)

PEER_WRITE(hello, Hello)
{
    ProtobufCBinaryData *key = NULL;

    peer__hello__init(to);
    if (m->n_key > 0 && (key = calloc(m->n_key, sizeof *key)) == NULL)
        return -1;
    for (size_t i = 0; i < m->n_key; i++)
        key[i] = peer_bytes(&m->key[i]);
    PEER_WRITE_FIELDS(HELLO)
    to->n_key = m->n_key;
    to->key = key;
    scratch->owned = key;
    return 0;
}

PEER_READ(hello, Hello)
{
    struct peer_bytes *key = NULL;

    if (from->n_key > 0 && (key = calloc(from->n_key, sizeof *key)) == NULL)
        return peer_no_memory(e);
    for (size_t i = 0; i < from->n_key; i++)
        key[i] = (struct peer_bytes){from->key[i].data, from->key[i].len};
    PEER_READ_FIELDS(HELLO)
    m->n_key = from->n_key;
    m->key = key;
    *owned = key;
    return 0;
}

size_t peer_hello_write(const struct peer_hello *hello, uint8_t *bytes, size_t size)
{
    struct peer_scratch scratch = {.owned = NULL};
    Peer__Hello packed;
    size_t length = 0;

    if (peer_hello_to_wire(hello, &packed, &scratch) != 0)
        return 0;
    length = peer__hello__get_packed_size(&packed);
    length = length <= size ? peer__hello__pack(&packed, bytes) : 0;
    free(scratch.owned);
    return length;
}

#define HELLO_UNPACKED_MOST 65536u

int peer_hello_read(const uint8_t *bytes, size_t length,
                    void (*heard)(void *context, const struct peer_hello *hello), void *context)
{
    Peer__Hello *unpacked =
        unpack_bounded(&peer__hello__descriptor, bytes, length, HELLO_UNPACKED_MOST);
    struct peer_hello hello;
    struct error e;
    void *owned = NULL;
    int result = -1;

    if (unpacked == NULL)
        return -1;
    if (peer_hello_from_wire(unpacked, &hello, &owned, &e) == 0) {
        heard(context, &hello);
        result = 0;
    }
    free(owned);
    unpack_free(unpacked);
    return result;
}
