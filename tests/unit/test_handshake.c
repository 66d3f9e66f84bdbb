/* Handshakes: keys, replays, reflections, encryption. */
#include <sodium.h>

#include "daemon/torusd/router/handshake.h"
#include "proto/frame.h"
#include "tests/support/cmocka.h"
#include "tests/unit/message_bytes.h"

#define SAID_MOST 4u

struct side {
    struct handshake handshake;
    struct handshake_config place;
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

static struct pair p; /* of the last begin() */

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

/* The keys of a side by their letters; '!' encrypts. */
static struct secrets keys(const char *letters)
{
    struct secrets s = {0};

    for (; *letters != '\0'; letters++)
        if (*letters != '!')
            key_set(&s.key[s.count++], (uint8_t[KEY_SIZE]){(uint8_t)*letters});
        else
            s.encrypt = true;
    return s;
}

static void place(struct pair *q, struct side *s, uint32_t rank, unsigned port, uint64_t seed)
{
    s->random = seed;
    s->place = (struct handshake_config){.torus = &q->torus,
                                         .secrets = &s->secrets,
                                         .address = "peer:1",
                                         .rank = rank,
                                         .neighbour = torus_neighbour(&q->torus, rank, port),
                                         .port = port,
                                         .boot = rank + 1,
                                         .minor = PROTOCOL_MINOR,
                                         .random = fill,
                                         .random_context = s,
                                         .say = say,
                                         .say_context = s};
}

/* Node 1 dials node 5 of a 4x4, port +0 to -0. Connections of different seeds have different challenges. */
static void begin_with(const char *dialler, const char *listener, uint64_t seed)
{
    p = (struct pair){.dialler.secrets = keys(dialler), .listener.secrets = keys(listener)};
    assert_int_equal(torus_parse(&p.torus, "4x4", NULL), 0);
    place(&p, &p.dialler, 1, 0, 2 * seed + 1000003);
    place(&p, &p.listener, 5, 1, 2 * seed + 1000004);
    handshake_begin(&p.dialler.handshake, &p.dialler.place, true);
    handshake_begin(&p.listener.handshake, &p.listener.place, false);
}

/* Both have the same key. */
static void begin(void)
{
    begin_with("a", "a", 1);
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
static struct side *run(struct pair *q, struct error *e)
{
    for (;;) {
        if (q->dialler.heard < q->dialler.says) {
            if (hear(&q->listener, &q->dialler, e) != 0)
                return &q->listener;
        } else if (q->listener.heard < q->listener.says) {
            if (hear(&q->dialler, &q->listener, e) != 0)
                return &q->dialler;
        } else {
            return NULL;
        }
    }
}

static void check_done(struct pair *q)
{
    struct error e = {0};

    if (run(q, &e) != NULL)
        fail_msg("%s", e.text);
    assert_int_equal(q->dialler.handshake.state, HANDSHAKE_DONE);
    assert_int_equal(q->listener.handshake.state, HANDSHAKE_DONE);
}

static void check_refused(struct side *by, const char *text)
{
    struct error e = {0};

    assert_ptr_equal(run(&p, &e), by);
    assert_int_equal(e.code, ERROR_PROTOCOL);
    assert_contains(e.text, text);
    assert_int_not_equal(by->handshake.state, HANDSHAKE_DONE);
}

/* Handshakes: keys, replays, reflections, encryption. */

TEST(both_have_the_key)
{
    begin();
    assert_int_equal(p.dialler.says, 1);
    assert_int_equal(p.listener.says, 0); /* a side that sends nothing gets no reply */
    check_done(&p);
    assert_int_equal(p.dialler.says, 2);
    assert_int_equal(p.listener.says, 2);
    assert_memory_equal(p.dialler.handshake.key->bytes, p.listener.handshake.key->bytes, KEY_SIZE);
}

TEST(neither_has_a_key)
{
    begin_with("", "", 1);
    check_done(&p);
    assert_int_equal(p.dialler.says, 1);
    assert_int_equal(p.listener.says, 1);
    assert_null(p.dialler.handshake.key);
}

TEST(keys_that_do_not_fit_are_refused)
{
    static const char *const rows[][3] = {
        {"a", "", "node 5 has none"},
        {"", "a", "node 1 has no cluster key"},
        {"a", "b", "wrong key"},
        {"ab", "cd", "wrong key"},
        {"a!", "a", "node 5 does not encrypt"},
        {"a", "a!", "node 5 encrypts"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin_with(rows[i][0], rows[i][1], 1);
        check_refused(&p.listener, rows[i][2]);
        assert_true(rows[i][0][0] != '\0' || p.listener.says == 0);
    }
}

/* A stranger that has seen the id of the key, but not the key. */
TEST(the_id_of_a_key_is_not_the_key)
{
    begin_with("b", "a", 1);
    p.dialler = (struct side){.secrets = keys("b")};
    memcpy(p.dialler.secrets.key[0].id, p.listener.secrets.key[0].id, KEY_ID_SIZE);
    place(&p, &p.dialler, 1, 0, 7);
    handshake_begin(&p.dialler.handshake, &p.dialler.place, true);
    check_refused(&p.dialler, "wrong proof"); /* the listener's does not fit its key */
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

/* Two nodes always have one key in common while the keys of all are changed one after another. */
TEST(keys_are_changed)
{
    static const char *const step[] = {"a", "ab", "ba", "b"};

    for (unsigned i = 0; i + 1 < 4; i++)
        for (unsigned d = i; d <= i + 1; d++)
            for (unsigned l = i; l <= i + 1; l++) {
                begin_with(step[d], step[l], 1);
                check_done(&p);
                assert_memory_equal(p.dialler.handshake.key->bytes, p.listener.handshake.key->bytes,
                                    KEY_SIZE);
            }
    begin_with("ab", "ba", 1); /* the dialler's wish decides */
    check_done(&p);
    assert_memory_equal(p.listener.handshake.key->id, p.dialler.secrets.key[0].id, KEY_ID_SIZE);
}

TEST(a_recorded_connection_is_refused)
{
    struct error e;

    begin();
    check_done(&p);
    const struct pair recorded = p;
    begin_with("a", "a", 2);
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
    struct error e;

    /* A listener that returns the dialler's messages. */
    begin();
    assert_int_equal(hear_bytes(&p.dialler, p.dialler.said[0], p.dialler.length[0], &e), -1);
    assert_contains(e.text, "reflection");
    /* A dialler that returns the listener's proof. */
    begin();
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
        struct pair *q = pair[i];
        assert_int_equal(torus_parse(&q->torus, "2x2", NULL), 0);
        q->dialler.secrets = q->listener.secrets = keys("a");
        place(q, &q->dialler, i, 2, 11); /* the same challenges */
        place(q, &q->listener, 1 - i, 3, 12);
        q->dialler.place.boot = q->listener.place.boot = 9;
        handshake_begin(&q->dialler.handshake, &q->dialler.place, true);
        handshake_begin(&q->listener.handshake, &q->listener.place, false);
    }
    check_done(&one);
    assert_int_equal(hear(&two.listener, &two.dialler, &e), 0);
    assert_fails(hear_bytes(&two.listener, one.dialler.said[1], one.dialler.length[1], &e), e,
                 ERROR_PROTOCOL, "");
}

static void encrypted(uint64_t seed, struct link_keys *dialler, struct link_keys *listener)
{
    struct error e;

    begin_with("a!", "a!", seed);
    check_done(&p);
    assert_int_equal(handshake_keys(&p.dialler.handshake, &p.dialler.place, dialler, &e), 0);
    assert_int_equal(handshake_keys(&p.listener.handshake, &p.listener.place, listener, &e), 0);
}

TEST(both_find_the_same_keys_to_encrypt_with)
{
    struct link_keys dialler, listener, other;

    encrypted(1, &dialler, &listener);
    assert_memory_equal(dialler.send, listener.receive, CIPHER_KEY_SIZE);
    assert_memory_equal(dialler.receive, listener.send, CIPHER_KEY_SIZE);
    assert_memory_not_equal(dialler.send, dialler.receive, CIPHER_KEY_SIZE);
    encrypted(2, &other, &listener); /* and others for each connection */
    assert_memory_not_equal(dialler.send, other.send, CIPHER_KEY_SIZE);
    assert_memory_not_equal(dialler.receive, other.receive, CIPHER_KEY_SIZE);
}

TEST(an_ephemeral_key_of_zeros_is_refused)
{
    struct link_keys dialler, listener;
    struct error e;

    encrypted(1, &dialler, &listener);
    memset(p.listener.handshake.theirs.ephemeral, 0, CHALLENGE_SIZE);
    assert_int_equal(handshake_keys(&p.listener.handshake, &p.listener.place, &listener, &e), -1);
}

/* Somebody between the nodes who passes on everything else cannot read the link. */
TEST(a_replaced_ephemeral_key_is_refused)
{
    begin_with("a!", "a!", 1);
    uint8_t *key = memmem(p.dialler.said[0], p.dialler.length[0],
                          p.dialler.handshake.mine.ephemeral, CHALLENGE_SIZE);
    assert_non_null(key);
    key[0] ^= 1;
    check_refused(&p.dialler, "wrong proof");
}

/* Handshakes with lies or invalid messages. */

/* What the dialler's hello says that is not true; 0: nothing. */
struct lie {
    const char *text, *dims; /* how it is refused; the torus */
    uint32_t version, rank, port;
    size_t challenge, key; /* this many bytes too few */
    uint64_t boot;         /* too high */
    uint8_t random;        /* changes the challenge */
    bool encrypts;
};

static void tell(const struct lie *lie)
{
    struct peer_message *head = message_read(p.dialler.said[0], p.dialler.length[0]);
    struct peer_hello *h = &head->hello;

    h->dims = lie->dims != NULL ? lie->dims : h->dims;
    h->version += lie->version;
    h->rank = lie->rank > 0 ? lie->rank : h->rank;
    h->port = lie->port > 0 ? lie->port : h->port;
    h->challenge.len -= lie->challenge;
    ((struct peer_bytes *)(uintptr_t)h->key)[0].len -= lie->key;
    h->boot += lie->boot;
    ((uint8_t *)(uintptr_t)h->challenge.data)[31] ^= lie->random;
    h->encrypt |= lie->encrypts;
    p.dialler.says = 0;
    say(&p.dialler, head);
    message_forget(head);
}

TEST(lies_are_refused)
{
    static const struct lie lies[] = {
        {"node 1 speaks protocol version", .version = 1},
        {"node 1 is in a torus 8x4, node 5 is in a torus 4x4", .dims = "8x4"},
        {"wrong cabling: node 4 port +0 is connected to node 5 port -0, which expects node 1 port "
         "+0",
         .rank = 4},
        {"wrong cabling", .rank = UINT32_MAX},
        {"wrong cabling: node 1 port +1 is connected to", .port = 2},
        {"node 1 port ? is", .port = UINT32_MAX},
        {"malformed", .challenge = CHALLENGE_SIZE},
        {"malformed", .challenge = 1},
        {"malformed", .key = 1},
        {"malformed", .key = KEY_ID_SIZE},
        {"malformed", .encrypts = true},
    };
    /* A relay between the two changes fields that the position does not determine. */
    static const struct lie relayed[] = {{"wrong proof", .boot = 1}, {"wrong proof", .random = 1}};

    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        begin();
        tell(&lies[i]);
        check_refused(&p.listener, lies[i].text);
        assert_int_equal(p.listener.says, 0);
    }
    for (size_t i = 0; i < sizeof relayed / sizeof *relayed; i++) {
        begin();
        tell(&relayed[i]);
        check_refused(&p.dialler, relayed[i].text);
    }
}

TEST(more_keys_than_there_may_be_are_refused)
{
    struct peer_bytes key[SECRETS_MOST + 1];
    uint8_t id[KEY_ID_SIZE] = {0};

    begin();
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
    check_refused(&p.listener, "malformed");
}

TEST(proofs_of_any_other_size_are_refused)
{
    struct error e;
    uint8_t bytes[100] = {0};

    for (size_t size = 0; size <= sizeof bytes; size++) {
        struct peer_proof proof = {0};
        begin();
        assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
        proof.digest = (struct peer_bytes){bytes, size};
        const struct peer_message head = {.kind = PEER_PROOF, .proof = proof};
        assert_int_equal(handshake_heard(&p.listener.handshake, &p.listener.place, &head, &e), -1);
    }
    /* The right message, cut short or with more bytes after it. */
    for (int more = -1; more <= 1; more += 2) {
        begin();
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
    struct error e;
    struct peer_heartbeat beat = {0};
    const struct peer_message head = {.kind = PEER_HEARTBEAT, .heartbeat = beat};
    begin();
    assert_fails(handshake_heard(&p.listener.handshake, &p.listener.place, &head, &e), e,
                 ERROR_PROTOCOL, "");
    begin();
    assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
    assert_int_equal(handshake_heard(&p.listener.handshake, &p.listener.place, &head, &e), -1);
    assert_contains(e.text, "did not begin with the proof");
    begin();
    assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
    p.dialler.heard = 0; /* hello again instead of the proof */
    assert_int_equal(hear(&p.listener, &p.dialler, &e), -1);
}
