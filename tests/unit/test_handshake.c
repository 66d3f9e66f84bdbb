/* Handshakes: keys, replays, reflections, encryption. */
#include <sodium.h>

#include "daemon/torusd/router/handshake.h"
#include "proto/frame.h"
#include "tests/support/cmocka.h"
#include "tests/unit/message_bytes.h"

#define SAID_MOST 4u

struct side {
    struct handshake handshake;
    struct handshake_place place;
    struct secrets secrets;
    uint64_t random;
    uint8_t said[SAID_MOST][FRAME_MAX_STRANGER_HEAD];
    size_t length[SAID_MOST];
    unsigned says, heard;
};

struct pair {
    struct torus torus;
    struct side dialler, listener;
};

/* Random bytes of a side, `context`. */
static void fill(void *context, void *buffer, size_t size)
{
    struct side *s = context;
    uint8_t *out = buffer;

    while (size-- > 0)
        *out++ = (uint8_t)((s->random = s->random * 6364136223846793005u + 1) >> 56);
}

/* Keeps a message of a side, `context`. */
static void say(void *context, const struct peer_message *head)
{
    struct side *s = context;

    assert_true(s->says < SAID_MOST);
    s->length[s->says] = message_write(head, s->said[s->says], sizeof s->said[s->says]);
    assert_in_range(s->length[s->says], 1, FRAME_MAX_STRANGER_HEAD);
    s->says++;
}

static struct secrets keys(const char *first, const char *second)
{
    const char *name[] = {first, second};
    struct secrets s = {0};

    for (unsigned i = 0; i < SECRETS_MOST && name[i] != NULL; i++) {
        uint8_t bytes[KEY_SIZE] = {0};
        memcpy(bytes, name[i], strlen(name[i]));
        key_set(&s.key[s.count++], bytes);
    }
    return s;
}

static void place(struct pair *p, struct side *s, uint32_t rank, unsigned port, uint64_t seed)
{
    s->random = seed;
    s->place = (struct handshake_place){.torus = &p->torus,
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

/* Node 1 dials node 5 of a 4x4, port +0 to -0. Connections of different seeds have different challenges. */
static void begin(struct pair *p, struct secrets dialler, struct secrets listener, uint64_t seed)
{
    *p = (struct pair){0};
    assert_int_equal(torus_parse(&p->torus, "4x4", NULL), 0);
    p->dialler.secrets = dialler;
    p->listener.secrets = listener;
    place(p, &p->dialler, 1, 0, 2 * seed + 1000003);
    place(p, &p->listener, 5, 1, 2 * seed + 1000004);
    handshake_begin(&p->dialler.handshake, &p->dialler.place, true);
    handshake_begin(&p->listener.handshake, &p->listener.place, false);
}

static int hear_bytes(struct side *s, const uint8_t *bytes, size_t length, struct error *e)
{
    struct peer_message *head = message_read(bytes, length);
    int result;

    assert_non_null(head);
    result = handshake_heard(&s->handshake, &s->place, head, e);
    message_forget(head);
    return result;
}

/* Passes on the next message of `from`. */
static int hear(struct side *s, struct side *from, struct error *e)
{
    unsigned i = from->heard++;

    assert_true(i < from->says);
    return hear_bytes(s, from->said[i], from->length[i], e);
}

/* Runs until neither side has more messages. Returns the side that refuses, or NULL. */
static struct side *run(struct pair *p, struct error *e)
{
    for (;;) {
        if (p->dialler.heard < p->dialler.says) {
            if (hear(&p->listener, &p->dialler, e) != 0)
                return &p->listener;
        } else if (p->listener.heard < p->listener.says) {
            if (hear(&p->dialler, &p->listener, e) != 0)
                return &p->dialler;
        } else {
            return NULL;
        }
    }
}

static void check_done(struct pair *p)
{
    struct error e = {0};

    if (run(p, &e) != NULL)
        fail_msg("%s", e.text);
    assert_int_equal(p->dialler.handshake.state, HANDSHAKE_DONE);
    assert_int_equal(p->listener.handshake.state, HANDSHAKE_DONE);
}

static void check_refused(struct pair *p, struct side *by, const char *text)
{
    struct error e = {0};

    assert_ptr_equal(run(p, &e), by);
    assert_int_equal(e.code, ERROR_PROTOCOL);
    assert_contains(e.text, text);
    assert_int_not_equal(by->handshake.state, HANDSHAKE_DONE);
}

/* Handshakes: keys, replays, reflections, encryption. */

TEST(both_have_the_key)
{
    struct pair p;

    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_int_equal(p.dialler.says, 1);
    assert_int_equal(p.listener.says, 0); /* a side that sends nothing gets no reply */
    check_done(&p);
    assert_int_equal(p.dialler.says, 2);
    assert_int_equal(p.listener.says, 2);
    assert_memory_equal(p.dialler.handshake.key->bytes, p.listener.handshake.key->bytes, KEY_SIZE);
}

TEST(neither_has_a_key)
{
    struct pair p;

    begin(&p, keys(NULL, NULL), keys(NULL, NULL), 1);
    check_done(&p);
    assert_int_equal(p.dialler.says, 1);
    assert_int_equal(p.listener.says, 1);
    assert_null(p.dialler.handshake.key);
}

TEST(a_key_on_one_side_only)
{
    struct pair p;

    begin(&p, keys("a", NULL), keys(NULL, NULL), 1);
    check_refused(&p, &p.listener, "node 5 has none");
    begin(&p, keys(NULL, NULL), keys("a", NULL), 1);
    check_refused(&p, &p.listener, "node 1 has no cluster key");
    assert_int_equal(p.listener.says, 0);
}

TEST(different_keys)
{
    struct pair p;

    begin(&p, keys("a", NULL), keys("b", NULL), 1);
    check_refused(&p, &p.listener, "wrong key");
    begin(&p, keys("a", "b"), keys("c", "d"), 1);
    check_refused(&p, &p.listener, "wrong key");
}

/* A stranger that has seen the id of the key, but not the key. */
TEST(the_id_of_a_key_is_not_the_key)
{
    struct pair p;

    begin(&p, keys("b", NULL), keys("a", NULL), 1);
    p.dialler = (struct side){.secrets = keys("b", NULL)};
    memcpy(p.dialler.secrets.key[0].id, p.listener.secrets.key[0].id, KEY_ID_SIZE);
    place(&p, &p.dialler, 1, 0, 7);
    handshake_begin(&p.dialler.handshake, &p.dialler.place, true);
    check_refused(&p, &p.dialler, "wrong proof"); /* the listener's does not fit its key */
    /* Even if it ignores the refusal. */
    struct error e;
    uint8_t zeros[PROOF_SIZE] = {0};
    struct peer_proof proof = {0};
    proof.digest = (struct peer_bytes){zeros, sizeof zeros};
    const struct peer_message head = {.kind = PEER_PROOF, .proof = proof};
    assert_fails(handshake_heard(&p.listener.handshake, &p.listener.place, &head, &e), e,
                 ERROR_PROTOCOL, "");
    assert_int_not_equal(p.listener.handshake.state, HANDSHAKE_DONE);
}

/* Two nodes always have one key in common while the keys of all are changed one after the other. */
TEST(keys_are_changed)
{
    static const char *const step[][2] = {{"a", NULL}, {"a", "b"}, {"b", "a"}, {"b", NULL}};
    struct pair p;

    for (unsigned i = 0; i + 1 < 4; i++)
        for (unsigned d = i; d <= i + 1; d++)
            for (unsigned l = i; l <= i + 1; l++) {
                begin(&p, keys(step[d][0], step[d][1]), keys(step[l][0], step[l][1]), 1);
                check_done(&p);
                assert_memory_equal(p.dialler.handshake.key->bytes, p.listener.handshake.key->bytes,
                                    KEY_SIZE);
            }
    begin(&p, keys("a", "b"), keys("b", "a"), 1); /* the dialler's wish decides */
    check_done(&p);
    assert_memory_equal(p.listener.handshake.key->id, p.dialler.secrets.key[0].id, KEY_ID_SIZE);
}

TEST(a_recorded_connection_is_refused)
{
    struct pair recorded, p;
    struct error e;

    begin(&recorded, keys("a", NULL), keys("a", NULL), 1);
    check_done(&recorded);
    begin(&p, keys("a", NULL), keys("a", NULL), 2);
    assert_int_equal(
        hear_bytes(&p.listener, recorded.dialler.said[0], recorded.dialler.length[0], &e), 0);
    assert_fails(hear_bytes(&p.listener, recorded.dialler.said[1], recorded.dialler.length[1], &e),
                 e, ERROR_PROTOCOL, "");
    assert_int_equal(
        hear_bytes(&p.dialler, recorded.listener.said[0], recorded.listener.length[0], &e), 0);
    assert_fails(hear_bytes(&p.dialler, recorded.listener.said[1], recorded.listener.length[1], &e),
                 e, ERROR_PROTOCOL, "");
    assert_int_equal(p.dialler.says, 1); /* it has proved nothing to a stranger */
}

TEST(reflected_messages_are_refused)
{
    struct pair p;
    struct error e;

    /* A listener that returns the dialler's messages. */
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_int_equal(hear_bytes(&p.dialler, p.dialler.said[0], p.dialler.length[0], &e), -1);
    assert_contains(e.text, "reflection");
    /* A dialler that returns the listener's proof. */
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
    assert_int_equal(hear_bytes(&p.listener, p.listener.said[1], p.listener.length[1], &e), -1);
    assert_contains(e.text, "reflection");
}

/* Two links between the same nodes: a proof for one link is not valid for the other. */
TEST(a_proof_of_another_link_is_refused)
{
    struct pair one = {0}, two = {0};
    struct error e;
    struct pair *pair[] = {&one, &two};
    for (unsigned i = 0; i < 2; i++) {
        struct pair *p = pair[i];
        assert_int_equal(torus_parse(&p->torus, "2x2", NULL), 0);
        p->dialler.secrets = p->listener.secrets = keys("a", NULL);
        place(p, &p->dialler, i, 2, 11); /* the same challenges */
        place(p, &p->listener, 1 - i, 3, 12);
        p->dialler.place.boot = p->listener.place.boot = 9;
        handshake_begin(&p->dialler.handshake, &p->dialler.place, true);
        handshake_begin(&p->listener.handshake, &p->listener.place, false);
    }
    check_done(&one);
    assert_int_equal(hear(&two.listener, &two.dialler, &e), 0);
    assert_fails(hear_bytes(&two.listener, one.dialler.said[1], one.dialler.length[1], &e), e,
                 ERROR_PROTOCOL, "");
}

static void encrypted(struct pair *p, uint64_t seed, struct link_keys *dialler,
                      struct link_keys *listener)
{
    struct secrets s = keys("a", NULL);
    struct error e;

    s.encrypt = true;
    begin(p, s, s, seed);
    check_done(p);
    assert_int_equal(handshake_keys(&p->dialler.handshake, &p->dialler.place, dialler, &e), 0);
    assert_int_equal(handshake_keys(&p->listener.handshake, &p->listener.place, listener, &e), 0);
}

TEST(both_find_the_same_keys_to_encrypt_with)
{
    struct pair p;
    struct link_keys dialler, listener, other;

    encrypted(&p, 1, &dialler, &listener);
    assert_memory_equal(dialler.send, listener.receive, CIPHER_KEY_SIZE);
    assert_memory_equal(dialler.receive, listener.send, CIPHER_KEY_SIZE);
    assert_memory_not_equal(dialler.send, dialler.receive, CIPHER_KEY_SIZE);
    encrypted(&p, 2, &other, &listener); /* and others for each connection */
    assert_memory_not_equal(dialler.send, other.send, CIPHER_KEY_SIZE);
    assert_memory_not_equal(dialler.receive, other.receive, CIPHER_KEY_SIZE);
}

TEST(both_must_want_to_encrypt)
{
    struct pair p;
    struct secrets plain = keys("a", NULL), secret = plain;

    secret.encrypt = true;
    begin(&p, secret, plain, 1);
    check_refused(&p, &p.listener, "node 5 does not encrypt");
    begin(&p, plain, secret, 1);
    check_refused(&p, &p.listener, "node 5 encrypts");
}

TEST(an_ephemeral_key_of_zeros_is_refused)
{
    struct pair p;
    struct link_keys dialler, listener;
    struct error e;

    encrypted(&p, 1, &dialler, &listener);
    memset(p.listener.handshake.theirs.ephemeral, 0, CHALLENGE_SIZE);
    assert_int_equal(handshake_keys(&p.listener.handshake, &p.listener.place, &listener, &e), -1);
}

/* Somebody between the nodes who passes on everything else cannot read the link. */
TEST(a_replaced_ephemeral_key_is_refused)
{
    struct secrets s = keys("a", NULL);
    struct pair p;

    s.encrypt = true;
    begin(&p, s, s, 1);
    uint8_t *key = memmem(p.dialler.said[0], p.dialler.length[0],
                          p.dialler.handshake.mine.ephemeral, CHALLENGE_SIZE);
    assert_non_null(key);
    key[0] ^= 1;
    check_refused(&p, &p.dialler, "wrong proof");
}

/* Handshakes with lies or invalid messages. */

/* Changes the hello that the dialler has sent. */
static void lie(struct pair *p, void (*change)(struct peer_hello *hello))
{
    struct peer_message *head = message_read(p->dialler.said[0], p->dialler.length[0]);

    change(&head->hello);
    p->dialler.says = 0;
    say(&p->dialler, head);
    message_forget(head);
}

static void of_another_version(struct peer_hello *h)
{
    h->version++;
}

static void of_another_torus(struct peer_hello *h)
{
    h->dims = "8x4";
}

static void of_another_node(struct peer_hello *h)
{
    h->rank = 4;
}

static void of_no_node(struct peer_hello *h)
{
    h->rank = UINT32_MAX;
}

static void of_another_port(struct peer_hello *h)
{
    h->port = 2;
}

static void of_no_port(struct peer_hello *h)
{
    h->port = UINT32_MAX;
}

static void without_challenge(struct peer_hello *h)
{
    h->challenge.len = 0;
}

static void with_short_challenge(struct peer_hello *h)
{
    h->challenge.len--;
}

static void with_short_key(struct peer_hello *h)
{
    ((struct peer_bytes *)(uintptr_t)h->key)[0].len--;
}

static void with_empty_key(struct peer_hello *h)
{
    ((struct peer_bytes *)(uintptr_t)h->key)[0].len = 0;
}

static void that_encrypts_with_nothing(struct peer_hello *h)
{
    h->encrypt = true;
}

static void of_another_boot(struct peer_hello *h)
{
    h->boot++;
}

static void with_another_challenge(struct peer_hello *h)
{
    ((uint8_t *)(uintptr_t)h->challenge.data)[31] ^= 1;
}

TEST(lies_are_refused)
{
    static const struct {
        void (*change)(struct peer_hello *hello);
        const char *text;
    } lies[] = {
        {of_another_version, "node 1 speaks protocol version"},
        {of_another_torus, "node 1 is in a torus 8x4, node 5 is in a torus 4x4"},
        {of_another_node, "wrong cabling: node 4 port +0 is connected to node 5 port -0, which "
                          "expects node 1 port +0"},
        {of_no_node, "wrong cabling"},
        {of_another_port, "wrong cabling: node 1 port +1 is connected to"},
        {of_no_port, "node 1 port ? is"},
        {without_challenge, "malformed"},
        {with_short_challenge, "malformed"},
        {with_short_key, "malformed"},
        {with_empty_key, "malformed"},
        {that_encrypts_with_nothing, "malformed"},
    };
    struct pair p;

    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        begin(&p, keys("a", NULL), keys("a", NULL), 1);
        lie(&p, lies[i].change);
        check_refused(&p, &p.listener, lies[i].text);
        assert_int_equal(p.listener.says, 0);
    }
    /* A relay between the two changes fields that the position does not determine. */
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    lie(&p, of_another_boot);
    check_refused(&p, &p.dialler, "wrong proof");
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    lie(&p, with_another_challenge);
    check_refused(&p, &p.dialler, "wrong proof");
}

TEST(more_keys_than_there_may_be_are_refused)
{
    struct pair p;
    struct peer_bytes key[SECRETS_MOST + 1];
    uint8_t id[KEY_ID_SIZE] = {0};

    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    struct peer_message *head = message_read(p.dialler.said[0], p.dialler.length[0]);
    const struct peer_bytes *before = head->hello.key;
    size_t count = head->hello.n_key;
    for (size_t i = 0; i < SECRETS_MOST + 1; i++)
        key[i] = (struct peer_bytes){id, sizeof id};
    head->hello.key = key;
    head->hello.n_key = SECRETS_MOST + 1;
    p.dialler.says = 0;
    say(&p.dialler, head);
    head->hello.key = before;
    head->hello.n_key = count;
    message_forget(head);
    check_refused(&p, &p.listener, "malformed");
}

TEST(proofs_of_any_other_size_are_refused)
{
    struct pair p;
    struct error e;
    uint8_t bytes[100] = {0};

    for (size_t size = 0; size <= sizeof bytes; size++) {
        struct peer_proof proof = {0};
        begin(&p, keys("a", NULL), keys("a", NULL), 1);
        assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
        proof.digest = (struct peer_bytes){bytes, size};
        const struct peer_message head = {.kind = PEER_PROOF, .proof = proof};
        assert_int_equal(handshake_heard(&p.listener.handshake, &p.listener.place, &head, &e), -1);
    }
    /* The right message, cut short or with more bytes after it. */
    for (int more = -1; more <= 1; more += 2) {
        begin(&p, keys("a", NULL), keys("a", NULL), 1);
        assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
        assert_int_equal(hear(&p.dialler, &p.listener, &e), 0);
        assert_int_equal(hear(&p.dialler, &p.listener, &e), 0);
        struct peer_message *head = message_read(p.dialler.said[1], p.dialler.length[1]);
        const uint8_t *right = head->proof.digest.data;
        memcpy(bytes, right, PROOF_SIZE);
        head->proof.digest = (struct peer_bytes){bytes, (size_t)((int)PROOF_SIZE + more)};
        assert_int_equal(handshake_heard(&p.listener.handshake, &p.listener.place, head, &e), -1);
        head->proof.digest = (struct peer_bytes){right, PROOF_SIZE};
        message_forget(head);
    }
}

TEST(messages_out_of_order_are_refused)
{
    struct pair p;
    struct error e;
    struct peer_heartbeat beat = {0};
    const struct peer_message head = {.kind = PEER_HEARTBEAT, .heartbeat = beat};
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_fails(handshake_heard(&p.listener.handshake, &p.listener.place, &head, &e), e,
                 ERROR_PROTOCOL, "");
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
    assert_int_equal(handshake_heard(&p.listener.handshake, &p.listener.place, &head, &e), -1);
    assert_contains(e.text, "did not begin with the proof");
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
    p.dialler.heard = 0; /* hello again instead of the proof */
    assert_int_equal(hear(&p.listener, &p.dialler, &e), -1);
}
