#include "daemon/torusd/router/handshake.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "proto/frame.h"
#include "proto/text.h"

enum role { DIALLER_PROVES, LISTENER_PROVES, DIALLER_SENDS, LISTENER_SENDS };

_Static_assert(CHALLENGE_SIZE == crypto_scalarmult_BYTES &&
                   CHALLENGE_SIZE == crypto_scalarmult_SCALARBYTES,
               "an ephemeral key is as long as a challenge");
_Static_assert(KEY_SIZE >= crypto_generichash_KEYBYTES_MIN, "digests are keyed with it");

/* --- digests --- */

static void add_number(crypto_generichash_state *state, uint64_t number, unsigned size)
{
    uint8_t bytes[8];

    for (unsigned i = 0; i < size; i++)
        bytes[i] = (uint8_t)(number >> 8 * (size - 1 - i));
    (void)crypto_generichash_update(state, bytes, size);
}

static void add_side(crypto_generichash_state *state, uint32_t rank, unsigned port,
                     const struct handshake_side *side)
{
    add_number(state, rank, 4);
    add_number(state, port, 4);
    add_number(state, side->boot, 8);
    add_number(state, side->encrypt, 1);
    add_number(state, side->minor, 4);
    (void)crypto_generichash_update(state, side->challenge, sizeof side->challenge);
    (void)crypto_generichash_update(state, side->ephemeral, sizeof side->ephemeral);
    add_number(state, side->keys, 1);
    (void)crypto_generichash_update(state, side->key[0], side->keys * (size_t)KEY_ID_SIZE);
}

/* Computes a digest of both hellos, and of `secret` after them unless it is NULL. */
static void compute_digest(const struct handshake *h, const struct handshake_config *p,
                           enum role role, const uint8_t *secret, uint8_t out[PROOF_SIZE])
{
    static const uint8_t label[] = "torusd link";
    crypto_generichash_state state;
    char dims[TORUS_TEXT_SIZE];
    unsigned opposite = torus_port_opposite(p->torus, p->port);

    (void)torus_format(p->torus, dims);
    (void)crypto_generichash_init(&state, h->key->bytes, KEY_SIZE, PROOF_SIZE);
    (void)crypto_generichash_update(&state, label, sizeof label - 1);
    add_number(&state, role, 1);
    add_number(&state, PROTOCOL_VERSION, 4);
    add_number(&state, strlen(dims), 2);
    (void)crypto_generichash_update(&state, (const uint8_t *)dims, strlen(dims));
    if (h->dialled)
        add_side(&state, p->rank, p->port, &h->mine);
    add_side(&state, p->neighbour, opposite, &h->theirs);
    if (!h->dialled)
        add_side(&state, p->rank, p->port, &h->mine);
    if (secret != NULL)
        (void)crypto_generichash_update(&state, secret, CHALLENGE_SIZE);
    (void)crypto_generichash_final(&state, out, PROOF_SIZE);
    sodium_memzero(&state, sizeof state);
}

/* --- saying --- */

static void make_side(struct handshake *h, const struct handshake_config *p)
{
    const struct secrets *s = p->secrets;

    h->mine = (struct handshake_side){
        .boot = p->boot, .encrypt = s->encrypt, .minor = p->minor, .keys = s->count};
    for (unsigned i = 0; i < s->count; i++)
        memcpy(h->mine.key[i], s->key[i].id, KEY_ID_SIZE);
    if (s->count > 0)
        p->random(p->random_context, h->mine.challenge, sizeof h->mine.challenge);
    if (s->encrypt) {
        p->random(p->random_context, h->ephemeral_secret, sizeof h->ephemeral_secret);
        (void)crypto_scalarmult_base(h->mine.ephemeral, h->ephemeral_secret);
    }
}

static void say_hello(struct handshake *h, const struct handshake_config *p)
{
    char dims[TORUS_TEXT_SIZE];
    struct peer_message message = {.kind = PEER_HELLO};
    struct peer_hello *hello = &message.hello;
    struct peer_bytes key[SECRETS_MOST];

    make_side(h, p);
    hello->version = PROTOCOL_VERSION;
    hello->dims = torus_format(p->torus, dims);
    hello->rank = p->rank;
    hello->port = p->port;
    hello->boot = h->mine.boot;
    hello->n_key = h->mine.keys;
    hello->key = key;
    for (unsigned i = 0; i < h->mine.keys; i++)
        key[i] = (struct peer_bytes){h->mine.key[i], KEY_ID_SIZE};
    if (h->mine.keys > 0)
        hello->challenge = (struct peer_bytes){h->mine.challenge, CHALLENGE_SIZE};
    hello->encrypt = h->mine.encrypt;
    hello->minor = h->mine.minor;
    if (h->mine.encrypt)
        hello->ephemeral = (struct peer_bytes){h->mine.ephemeral, CHALLENGE_SIZE};
    p->say(p->say_context, &message);
}

static void say_proof(const struct handshake *h, const struct handshake_config *p)
{
    uint8_t bytes[PROOF_SIZE];
    const struct peer_message message = {.kind = PEER_PROOF, .proof = {{bytes, sizeof bytes}}};

    compute_digest(h, p, h->dialled ? DIALLER_PROVES : LISTENER_PROVES, NULL, bytes);
    p->say(p->say_context, &message);
}

void handshake_begin(struct handshake *h, const struct handshake_config *place, bool dialled)
{
    *h = (struct handshake){.dialled = dialled};
    if (dialled)
        say_hello(h, place);
}

/* --- hearing --- */

/* Errors name both nodes, so that both logs have the same text. They name no addresses, so that the text is
 * the same at every attempt, and is logged once. */

static bool is_of_torus(const struct handshake_config *p, const struct peer_hello *hello)
{
    char mine[TORUS_TEXT_SIZE];

    return hello->version == PROTOCOL_VERSION &&
           strcmp(hello->dims, torus_format(p->torus, mine)) == 0;
}

/* The major versions are equal, and the minor ones differ by one at most. */
static bool is_compatible(const struct handshake_config *p, const struct peer_hello *hello)
{
    return hello->version == PROTOCOL_VERSION &&
           (hello->minor > p->minor ? hello->minor - p->minor : p->minor - hello->minor) <= 1;
}

/* Checks that the peer is the neighbour that the torus has at this port. */
static int check_position(const struct handshake_config *p, const struct peer_hello *hello,
                          struct error *e)
{
    unsigned opposite = torus_port_opposite(p->torus, p->port);
    char mine[TORUS_TEXT_SIZE], theirs[TORUS_TEXT_SIZE], here[TORUS_PORT_NAME_SIZE];
    char expected[TORUS_PORT_NAME_SIZE], got[TORUS_PORT_NAME_SIZE];

    if (!is_compatible(p, hello))
        return error_set(
            e, ERROR_PROTOCOL,
            "wrong version: node %u speaks protocol version %u.%u, node %u speaks version %u.%u",
            hello->rank, hello->version, hello->minor, p->rank, PROTOCOL_VERSION, p->minor);
    (void)torus_format(p->torus, mine);
    if (strcmp(hello->dims, mine) != 0)
        return error_set(
            e, ERROR_PROTOCOL, "wrong torus: node %u is in a torus %s, node %u is in a torus %s",
            hello->rank, text_printable(theirs, sizeof theirs, hello->dims), p->rank, mine);
    if (hello->rank != p->neighbour || hello->port != opposite)
        return error_set(
            e, ERROR_PROTOCOL,
            "wrong cabling: node %u port %s is connected to node %u port %s, which expects node %u "
            "port %s",
            hello->rank,
            hello->rank < p->torus->nodes && hello->port < torus_ports(p->torus)
                ? torus_port_name(p->torus, hello->rank, hello->port, got)
                : "?",
            p->rank, torus_port_name(p->torus, p->rank, p->port, here), p->neighbour,
            torus_port_name(p->torus, p->neighbour, opposite, expected));
    return 0;
}

static int refuse_malformed(struct error *e)
{
    return error_set(e, ERROR_PROTOCOL, "the hello is malformed");
}

/* Copies `in`, which must have exactly this size. */
static int copy_exactly(uint8_t *out, size_t size, const struct peer_bytes *in)
{
    if (in->len != size)
        return -1;
    if (size > 0) /* otherwise in->data may be NULL */
        memcpy(out, in->data, size);
    return 0;
}

static int take_side(struct handshake_side *side, const struct peer_hello *hello, struct error *e)
{
    bool has_key = hello->n_key > 0;

    *side = (struct handshake_side){
        .boot = hello->boot, .encrypt = hello->encrypt, .minor = hello->minor};
    if (hello->n_key > SECRETS_MOST || (hello->encrypt && !has_key))
        return refuse_malformed(e);
    side->keys = (unsigned)hello->n_key;
    for (unsigned i = 0; i < side->keys; i++)
        if (copy_exactly(side->key[i], KEY_ID_SIZE, &hello->key[i]) != 0)
            return refuse_malformed(e);
    if (copy_exactly(side->challenge, has_key ? CHALLENGE_SIZE : 0, &hello->challenge) != 0 ||
        copy_exactly(side->ephemeral, hello->encrypt ? CHALLENGE_SIZE : 0, &hello->ephemeral) != 0)
        return refuse_malformed(e);
    return 0;
}

static const struct key *find_key(const struct secrets *s, const uint8_t id[KEY_ID_SIZE])
{
    for (unsigned i = 0; i < s->count; i++)
        if (memcmp(s->key[i].id, id, KEY_ID_SIZE) == 0)
            return &s->key[i];
    return NULL;
}

/* Returns the first key of the dialler that the listener also has. Both sides find the same key. */
static const struct key *common_key(const struct handshake *h, const struct secrets *s)
{
    const struct key *found;

    for (unsigned i = 0; i < h->theirs.keys && !h->dialled; i++)
        if ((found = find_key(s, h->theirs.key[i])) != NULL)
            return found;
    for (unsigned i = 0; i < s->count && h->dialled; i++)
        for (unsigned k = 0; k < h->theirs.keys; k++)
            if (memcmp(s->key[i].id, h->theirs.key[k], KEY_ID_SIZE) == 0)
                return &s->key[i];
    return NULL;
}

static int choose_key(struct handshake *h, const struct handshake_config *p, struct error *e)
{
    const struct secrets *s = p->secrets;
    char mine[KEY_ID_TEXT_SIZE], theirs[KEY_ID_TEXT_SIZE];

    if (s->count == 0 && h->theirs.keys > 0)
        return error_set(e, ERROR_PROTOCOL,
                         "no key: node %u has a cluster key, node %u has none (key_file)",
                         p->neighbour, p->rank);
    if (s->count > 0 && h->theirs.keys == 0)
        return error_set(e, ERROR_PROTOCOL,
                         "no key: node %u has no cluster key, node %u requires one (key_file)",
                         p->neighbour, p->rank);
    h->key = common_key(h, s);
    if (s->count > 0 && h->key == NULL)
        return error_set(e, ERROR_PROTOCOL,
                         "wrong key: node %u has the cluster key %s, node %u has %s", p->neighbour,
                         key_id_text(h->theirs.key[0], theirs), p->rank,
                         key_id_text(s->key[0].id, mine));
    if (s->encrypt != h->theirs.encrypt)
        return error_set(e, ERROR_PROTOCOL,
                         "node %u %s its links, node %u does%s: set encrypt on both or neither",
                         p->rank, s->encrypt ? "encrypts" : "does not encrypt", p->neighbour,
                         s->encrypt ? " not" : "");
    return 0;
}

static int on_hello(struct handshake *h, const struct handshake_config *p,
                    const struct peer_hello *hello, struct error *e)
{
    /* A reflected hello also fails the check of the position, but this error names the cause. */
    if (h->dialled && h->mine.keys > 0 && hello->challenge.len == CHALLENGE_SIZE &&
        memcmp(hello->challenge.data, h->mine.challenge, CHALLENGE_SIZE) == 0)
        return error_set(e, ERROR_PROTOCOL,
                         "reflection: the peer sent the challenge of node %u back", p->rank);
    h->theirs.boot = hello->boot;
    h->found_rank = hello->rank;
    h->found_port = hello->port;
    if (check_position(p, hello, e) != 0) {
        h->elsewhere = is_of_torus(p, hello);
        return -1;
    }
    if (take_side(&h->theirs, hello, e) != 0 || choose_key(h, p, e) != 0)
        return -1;
    if (!h->dialled) {
        say_hello(h, p);
        if (h->key != NULL)
            say_proof(h, p);
    }
    h->state = h->key != NULL ? HANDSHAKE_PROOF : HANDSHAKE_DONE;
    return 0;
}

static bool is_proof(const struct handshake *h, const struct handshake_config *p, enum role role,
                     const struct peer_bytes *proof)
{
    uint8_t expected[PROOF_SIZE];

    compute_digest(h, p, role, NULL, expected);
    return proof->len == PROOF_SIZE && sodium_memcmp(proof->data, expected, PROOF_SIZE) == 0;
}

static int on_proof(struct handshake *h, const struct handshake_config *p,
                    const struct peer_proof *proof, struct error *e)
{
    const enum role mine = h->dialled ? DIALLER_PROVES : LISTENER_PROVES;
    const enum role theirs = h->dialled ? LISTENER_PROVES : DIALLER_PROVES;
    char id[KEY_ID_TEXT_SIZE];

    if (is_proof(h, p, theirs, &proof->digest)) {
        if (h->dialled)
            say_proof(h, p);
        h->state = HANDSHAKE_DONE;
        return 0;
    }
    if (is_proof(h, p, mine, &proof->digest))
        return error_set(e, ERROR_PROTOCOL, "reflection: the peer sent the proof of node %u back",
                         p->rank);
    return error_set(e, ERROR_PROTOCOL,
                     "wrong proof: node %u does not prove that it has the cluster key %s: its "
                     "proof is for another connection (a replay), or made with another key",
                     p->neighbour, key_id_text(h->key->id, id));
}

int handshake_heard(struct handshake *h, const struct handshake_config *place,
                    const struct peer_message *message, struct error *e)
{
    if (message->kind == PEER_REFUSAL) {
        char reason[256];
        return error_set(e, ERROR_LINK, "refused by %s: %s", place->address,
                         text_printable(reason, sizeof reason, message->refusal.reason));
    }
    if (h->state == HANDSHAKE_HELLO) {
        if (message->kind != PEER_HELLO)
            return error_set(e, ERROR_PROTOCOL, "the other side did not begin with a hello");
        return on_hello(h, place, &message->hello, e);
    }
    if (message->kind != PEER_PROOF)
        return error_set(e, ERROR_PROTOCOL,
                         "the other side did not begin with the proof that it has the cluster key");
    return on_proof(h, place, &message->proof, e);
}

/* --- afterwards --- */

int handshake_keys(const struct handshake *h, const struct handshake_config *place,
                   struct link_keys *keys, struct error *e)
{
    uint8_t shared[CHALLENGE_SIZE];
    enum role send = h->dialled ? DIALLER_SENDS : LISTENER_SENDS;
    enum role receive = h->dialled ? LISTENER_SENDS : DIALLER_SENDS;

    if (crypto_scalarmult(shared, h->ephemeral_secret, h->theirs.ephemeral) != 0)
        return refuse_malformed(e);
    compute_digest(h, place, send, shared, keys->send);
    compute_digest(h, place, receive, shared, keys->receive);
    sodium_memzero(shared, sizeof shared);
    return 0;
}

void handshake_forget(struct handshake *h)
{
    sodium_memzero(h, sizeof *h);
}

void handshake_forget_keys(struct link_keys *keys)
{
    sodium_memzero(keys, sizeof *keys);
}
