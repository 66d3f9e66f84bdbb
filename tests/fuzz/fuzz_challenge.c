/* The handshake between a node and a partner that may have the cluster key. The partner's messages arrive
 * unchanged or altered, are reflected, come from an earlier connection, or do not arrive. Input: a byte for the
 * setting, then operations: a byte with the kind, and its arguments.
 *
 * Invariant: a side accepts the other only after proof that it has the key, for this connection; then each side
 * knows of the other exactly what the other has said. */
#include <string.h>

#include <sodium.h>

#include "daemon/torusd/router/handshake.h"
#include "proto/frame.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/message_bytes.h"

#define SAID_MOST 8u

enum action { GENUINE, ALTERED, BYTES, REFLECTED, REPLAYED, TO_PARTNER, ACTIONS };

struct message {
    uint8_t bytes[FRAME_MAX_STRANGER_HEAD];
    size_t length;
};

struct side {
    struct handshake handshake;
    struct handshake_config place;
    struct secrets secrets;
    uint64_t random;
    struct message said[SAID_MOST];
    unsigned says, heard;
    bool refuses;
};

struct pair {
    struct torus torus;
    struct side node, partner;
};

static void fill(void *context, void *buffer, size_t size)
{
    struct side *s = context;
    uint8_t *out = buffer;

    while (size-- > 0)
        *out++ = (uint8_t)((s->random = s->random * 6364136223846793005u + 1) >> 56);
}

static void say(void *context, const struct peer_message *head)
{
    struct side *s = context;
    struct message *m = &s->said[s->says++];

    REQUIRE(s->says <= SAID_MOST);
    m->length = message_write(head, m->bytes, sizeof m->bytes);
    REQUIRE(m->length > 0);
}

static void take_place(struct pair *p, struct side *s, uint32_t rank, unsigned port, uint64_t seed)
{
    s->random = seed;
    s->place = (struct handshake_config){.torus = &p->torus,
                                         .secrets = &s->secrets,
                                         .address = "peer:1",
                                         .rank = rank,
                                         .neighbour = torus_neighbour(&p->torus, rank, port),
                                         .port = port,
                                         .boot = rank + 1,
                                         .minor = PROTOCOL_MINOR,
                                         .random = fill,
                                         .random_context = s,
                                         .say = say,
                                         .say_context = s};
}

/* The keys of a side, by two bits, one for each key. `c` may replace `a`: another key with the id of `a`. */
static void take_keys(struct secrets *s, unsigned which, bool forged)
{
    *s = (struct secrets){0};
    for (unsigned i = 0; i < SECRETS_MOST; i++) {
        uint8_t bytes[KEY_SIZE] = {(uint8_t)('a' + i)};
        if ((which & 1u << i) == 0)
            continue;
        key_set(&s->key[s->count], bytes);
        if (forged)
            s->key[s->count].bytes[KEY_SIZE - 1] ^= 1;
        s->count++;
    }
}

/* Setting: which side dials, the keys of both, whether the partner only knows their ids, encryption. */
static void begin(struct pair *p, uint8_t setting, uint64_t seed)
{
    bool dials = (setting & 1) != 0;

    *p = (struct pair){0};
    REQUIRE(torus_parse(&p->torus, "4x4", NULL) == 0);
    take_keys(&p->node.secrets, 1u | (setting & 2u), false);
    take_keys(&p->partner.secrets, setting >> 2 & 3u, (setting & 16) != 0);
    p->node.secrets.encrypt = (setting & 32) != 0;
    p->partner.secrets.encrypt = (setting & 64) != 0 && p->partner.secrets.count > 0;
    take_place(p, &p->node, dials ? 1 : 5, dials ? 0 : 1, 2 * seed + 1000003);
    take_place(p, &p->partner, dials ? 5 : 1, dials ? 1 : 0, 2 * seed + 1000004);
    handshake_begin(&p->node.handshake, &p->node.place, dials);
    handshake_begin(&p->partner.handshake, &p->partner.place, !dials);
}

static void hear(struct side *s, const uint8_t *bytes, size_t length)
{
    struct peer_message *head = message_read(bytes, length);
    struct error e;

    if (head == NULL || s->refuses || s->handshake.state == HANDSHAKE_DONE) {
        message_forget(head);
        return;
    }
    s->refuses = handshake_heard(&s->handshake, &s->place, head, &e) != 0;
    message_forget(head);
}

static void pass_on(struct side *to, struct side *from)
{
    if (from->heard < from->says) {
        const struct message *m = &from->said[from->heard++];
        hear(to, m->bytes, m->length);
    }
}

static bool knows(const struct handshake_side *theirs, const struct handshake_side *said)
{
    return theirs->boot == said->boot && theirs->encrypt == said->encrypt &&
           theirs->keys == said->keys &&
           memcmp(theirs->challenge, said->challenge, CHALLENGE_SIZE) == 0 &&
           memcmp(theirs->ephemeral, said->ephemeral, CHALLENGE_SIZE) == 0 &&
           memcmp(theirs->key, said->key, theirs->keys * (size_t)KEY_ID_SIZE) == 0;
}

static void check_let_in(const struct pair *p, bool forged)
{
    const struct handshake *here = &p->node.handshake, *there = &p->partner.handshake;
    struct link_keys keys;
    struct error e;

    if (here->state != HANDSHAKE_DONE)
        return;
    REQUIRE(!forged && here->key != NULL && there->key != NULL);
    REQUIRE(memcmp(here->key->bytes, there->key->bytes, KEY_SIZE) == 0);
    REQUIRE(knows(&here->theirs, &there->mine) && knows(&there->theirs, &here->mine));
    REQUIRE(p->node.secrets.encrypt == p->partner.secrets.encrypt);
    if (p->node.secrets.encrypt)
        REQUIRE(handshake_keys(here, &p->node.place, &keys, &e) == 0);
}

static void run_operation(struct pair *p, const struct pair *earlier, struct input *in)
{
    uint8_t kind = input_byte(in);
    size_t length;

    switch ((enum action)(kind % ACTIONS)) {
    case GENUINE:
        pass_on(&p->node, &p->partner);
        break;
    case ALTERED: { /* which the partner does not have */
        if (p->partner.heard == p->partner.says)
            break;
        struct message m = p->partner.said[p->partner.heard++];
        for (unsigned times = 1 + kind / ACTIONS % 4; times > 0; times--) {
            size_t at = input_byte(in);
            m.bytes[at % m.length] ^= input_byte(in);
        }
        hear(&p->node, m.bytes, m.length);
        break;
    }
    case BYTES: {
        length = input_byte(in);
        const uint8_t *bytes = input_bytes(in, &length);
        hear(&p->node, bytes, length);
        break;
    }
    case REFLECTED:
        if (p->node.says > 0) {
            const struct message m = p->node.said[kind / ACTIONS % p->node.says];
            hear(&p->node, m.bytes, m.length);
        }
        break;
    case REPLAYED:
        if (earlier->partner.says > 0) {
            const struct message *m =
                &earlier->partner.said[kind / ACTIONS % earlier->partner.says];
            hear(&p->node, m->bytes, m->length);
        }
        break;
    case TO_PARTNER:
        pass_on(&p->partner, &p->node);
        break;
    case ACTIONS:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pair earlier, p;
    struct input in = {data, size};
    uint8_t setting = input_byte(&in);

    /* An earlier handshake between two sides that have the key. */
    begin(&earlier, (uint8_t)((setting & ~(16u | 32u | 64u)) | 4u), 1);
    for (int i = 0; i < 4; i++) {
        pass_on(&earlier.partner, &earlier.node);
        pass_on(&earlier.node, &earlier.partner);
    }
    REQUIRE(earlier.node.handshake.state == HANDSHAKE_DONE);
    begin(&p, setting, 2);
    for (int i = 0; i < 50 && in.size > 0; i++) {
        run_operation(&p, &earlier, &in);
        check_let_in(&p, (setting & 16) != 0);
    }
    handshake_forget(&p.node.handshake);
    handshake_forget(&p.partner.handshake);
    return 0;
}
