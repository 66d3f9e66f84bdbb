/* Who is let in: two sides that shake hands, and one that is lied to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sodium.h>

#include "daemon/router/links/handshake.h"
#include "proto/frame.h"

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

static void fill(void *context, void *buffer, size_t size)
{
    struct side *s = context;
    uint8_t *out = buffer;

    while (size-- > 0)
        *out++ = (uint8_t)((s->random = s->random * 6364136223846793005u + 1) >> 56);
}

static void say(void *context, const Peer__Head *head)
{
    struct side *s = context;

    assert_true(s->says < SAID_MOST);
    s->length[s->says] = peer__head__get_packed_size(head);
    assert_true(s->length[s->says] <= FRAME_MAX_STRANGER_HEAD);
    (void)peer__head__pack(head, s->said[s->says++]);
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
    Peer__Head *head = peer__head__unpack(NULL, length, bytes);
    int result;

    assert_non_null(head);
    result = handshake_heard(&s->handshake, &s->place, head, e);
    peer__head__free_unpacked(head, NULL);
    return result;
}

/* The next that `from` has said. */
static int hear(struct side *s, struct side *from, struct error *e)
{
    unsigned i = from->heard++;

    assert_true(i < from->says);
    return hear_bytes(s, from->said[i], from->length[i], e);
}

/* Until both have nothing more to say. Returns the side that refuses, or NULL. */
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
    if (strstr(e.text, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, e.text);
    assert_int_not_equal(by->handshake.state, HANDSHAKE_DONE);
}

static void both_have_the_key(void **state)
{
    struct pair p;
    (void)state;
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_int_equal(p.dialler.says, 1);
    assert_int_equal(p.listener.says, 0); /* who says nothing is told nothing */
    check_done(&p);
    assert_int_equal(p.dialler.says, 2);
    assert_int_equal(p.listener.says, 2);
    assert_memory_equal(p.dialler.handshake.key->bytes, p.listener.handshake.key->bytes, KEY_SIZE);
}

static void neither_has_a_key(void **state)
{
    struct pair p;
    (void)state;
    begin(&p, keys(NULL, NULL), keys(NULL, NULL), 1);
    check_done(&p);
    assert_int_equal(p.dialler.says, 1);
    assert_int_equal(p.listener.says, 1);
    assert_null(p.dialler.handshake.key);
}

static void a_key_on_one_side_only(void **state)
{
    struct pair p;
    (void)state;
    begin(&p, keys("a", NULL), keys(NULL, NULL), 1);
    check_refused(&p, &p.listener, "no key: node 1 has a cluster key, node 5 has none");
    begin(&p, keys(NULL, NULL), keys("a", NULL), 1);
    check_refused(&p, &p.listener, "no key: node 1 has no cluster key");
    assert_int_equal(p.listener.says, 0);
}

static void different_keys(void **state)
{
    struct pair p;
    (void)state;
    begin(&p, keys("a", NULL), keys("b", NULL), 1);
    check_refused(&p, &p.listener, "wrong key: node 1 has the cluster key");
    begin(&p, keys("a", "b"), keys("c", "d"), 1);
    check_refused(&p, &p.listener, "wrong key");
}

/* A stranger that has seen the id of the key, but not the key. */
static void the_id_of_a_key_is_not_the_key(void **state)
{
    struct pair p;
    (void)state;
    begin(&p, keys("b", NULL), keys("a", NULL), 1);
    p.dialler = (struct side){.secrets = keys("b", NULL)};
    memcpy(p.dialler.secrets.key[0].id, p.listener.secrets.key[0].id, KEY_ID_SIZE);
    place(&p, &p.dialler, 1, 0, 7);
    handshake_begin(&p.dialler.handshake, &p.dialler.place, true);
    check_refused(&p, &p.dialler, "wrong proof"); /* the listener's does not fit its key */
    /* Even if it goes on regardless. */
    struct error e;
    uint8_t zeros[PROOF_SIZE] = {0};
    Peer__Proof proof = PEER__PROOF__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    proof.digest = (ProtobufCBinaryData){sizeof zeros, zeros};
    head.kind_case = PEER__HEAD__KIND_PROOF;
    head.proof = &proof;
    assert_int_equal(handshake_heard(&p.listener.handshake, &p.listener.place, &head, &e), -1);
    assert_non_null(strstr(e.text, "wrong proof: node 1 does not prove"));
    assert_int_not_equal(p.listener.handshake.state, HANDSHAKE_DONE);
}

/* Two nodes always have one key in common while the keys of all are changed one after the other. */
static void keys_are_changed(void **state)
{
    static const char *const step[][2] = {{"a", NULL}, {"a", "b"}, {"b", "a"}, {"b", NULL}};
    struct pair p;
    (void)state;
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

static void a_recorded_connection_is_refused(void **state)
{
    struct pair recorded, p;
    struct error e;
    (void)state;
    begin(&recorded, keys("a", NULL), keys("a", NULL), 1);
    check_done(&recorded);
    begin(&p, keys("a", NULL), keys("a", NULL), 2);
    assert_int_equal(
        hear_bytes(&p.listener, recorded.dialler.said[0], recorded.dialler.length[0], &e), 0);
    assert_int_equal(
        hear_bytes(&p.listener, recorded.dialler.said[1], recorded.dialler.length[1], &e), -1);
    assert_non_null(strstr(e.text, "a replay"));
    assert_int_equal(
        hear_bytes(&p.dialler, recorded.listener.said[0], recorded.listener.length[0], &e), 0);
    assert_int_equal(
        hear_bytes(&p.dialler, recorded.listener.said[1], recorded.listener.length[1], &e), -1);
    assert_non_null(strstr(e.text, "a replay"));
    assert_int_equal(p.dialler.says, 1); /* and it has proved nothing to who is not the neighbour */
}

static void what_comes_back_is_refused(void **state)
{
    struct pair p;
    struct error e;
    (void)state;
    /* A listener that returns what it hears. */
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_int_equal(hear_bytes(&p.dialler, p.dialler.said[0], p.dialler.length[0], &e), -1);
    assert_non_null(strstr(e.text, "reflection: the challenge of node 1 is sent back"));
    /* A dialler that returns the listener's proof. */
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
    assert_int_equal(hear_bytes(&p.listener, p.listener.said[1], p.listener.length[1], &e), -1);
    assert_non_null(strstr(e.text, "reflection: the proof of node 5 is sent back"));
}

/* Two links between the same nodes: what is proved on one does not fit the other. */
static void a_proof_of_another_link_is_refused(void **state)
{
    struct pair one = {0}, two = {0};
    struct error e;
    (void)state;
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
    assert_int_equal(hear_bytes(&two.listener, one.dialler.said[1], one.dialler.length[1], &e), -1);
    assert_non_null(strstr(e.text, "wrong proof"));
}

/* Applies a change to the hello that the dialler has said. */
static void lie(struct pair *p, void (*change)(Peer__Hello *hello))
{
    Peer__Head *head = peer__head__unpack(NULL, p->dialler.length[0], p->dialler.said[0]);

    change(head->hello);
    p->dialler.says = 0;
    say(&p->dialler, head);
    peer__head__free_unpacked(head, NULL);
}

static void of_another_version(Peer__Hello *h)
{
    h->version++;
}
static void of_another_torus(Peer__Hello *h)
{
    h->dims[0] = '8';
}
static void of_another_node(Peer__Hello *h)
{
    h->rank = 4;
}
static void of_no_node(Peer__Hello *h)
{
    h->rank = UINT32_MAX;
}
static void of_another_port(Peer__Hello *h)
{
    h->port = 2;
}
static void of_no_port(Peer__Hello *h)
{
    h->port = UINT32_MAX;
}
static void without_challenge(Peer__Hello *h)
{
    h->challenge.len = 0;
}
static void with_short_challenge(Peer__Hello *h)
{
    h->challenge.len--;
}
static void with_short_key(Peer__Hello *h)
{
    h->key[0].len--;
}
static void with_empty_key(Peer__Hello *h)
{
    h->key[0].len = 0;
}
static void that_encrypts_with_nothing(Peer__Hello *h)
{
    h->encrypt = true;
}
static void of_another_boot(Peer__Hello *h)
{
    h->boot++;
}
static void with_another_challenge(Peer__Hello *h)
{
    h->challenge.data[31] ^= 1;
}

static void lies_are_refused(void **state)
{
    static const struct {
        void (*change)(Peer__Hello *hello);
        const char *text;
    } lies[] = {
        {of_another_version, "node 1 speaks protocol version"},
        {of_another_torus, "node 1 is in a torus 8x4, node 5 is in a torus 4x4"},
        {of_another_node, "wrong cabling: node 4 port +0 is connected to node 5 port -0, which "
                          "expects node 1 port +0"},
        {of_no_node, "wrong cabling"},
        {of_another_port, "wrong cabling: node 1 port +1 is connected to"},
        {of_no_port, "node 1 port ? is"},
        {without_challenge, "not well formed"},
        {with_short_challenge, "not well formed"},
        {with_short_key, "not well formed"},
        {with_empty_key, "not well formed"},
        {that_encrypts_with_nothing, "not well formed"},
    };
    struct pair p;
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        begin(&p, keys("a", NULL), keys("a", NULL), 1);
        lie(&p, lies[i].change);
        check_refused(&p, &p.listener, lies[i].text);
        assert_int_equal(p.listener.says, 0);
    }
    /* Somebody between the two changes what the position does not tell. */
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    lie(&p, of_another_boot);
    check_refused(&p, &p.dialler, "wrong proof");
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    lie(&p, with_another_challenge);
    check_refused(&p, &p.dialler, "wrong proof");
}

static void more_keys_than_there_may_be_are_refused(void **state)
{
    struct pair p;
    ProtobufCBinaryData key[SECRETS_MOST + 1];
    uint8_t id[KEY_ID_SIZE] = {0};
    (void)state;
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    Peer__Head *head = peer__head__unpack(NULL, p.dialler.length[0], p.dialler.said[0]);
    ProtobufCBinaryData *before = head->hello->key;
    size_t count = head->hello->n_key;
    for (size_t i = 0; i < SECRETS_MOST + 1; i++)
        key[i] = (ProtobufCBinaryData){sizeof id, id};
    head->hello->key = key;
    head->hello->n_key = SECRETS_MOST + 1;
    p.dialler.says = 0;
    say(&p.dialler, head);
    head->hello->key = before;
    head->hello->n_key = count;
    peer__head__free_unpacked(head, NULL);
    check_refused(&p, &p.listener, "not well formed");
}

static void proofs_of_any_other_size_are_refused(void **state)
{
    struct pair p;
    struct error e;
    uint8_t bytes[100] = {0};
    (void)state;
    for (size_t size = 0; size <= sizeof bytes; size++) {
        Peer__Proof proof = PEER__PROOF__INIT;
        Peer__Head head = PEER__HEAD__INIT;
        begin(&p, keys("a", NULL), keys("a", NULL), 1);
        assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
        proof.digest = (ProtobufCBinaryData){size, bytes};
        head.kind_case = PEER__HEAD__KIND_PROOF;
        head.proof = &proof;
        assert_int_equal(handshake_heard(&p.listener.handshake, &p.listener.place, &head, &e), -1);
    }
    /* The right one, but for its end or with more behind it. */
    for (int more = -1; more <= 1; more += 2) {
        begin(&p, keys("a", NULL), keys("a", NULL), 1);
        assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
        assert_int_equal(hear(&p.dialler, &p.listener, &e), 0);
        assert_int_equal(hear(&p.dialler, &p.listener, &e), 0);
        Peer__Head *head = peer__head__unpack(NULL, p.dialler.length[1], p.dialler.said[1]);
        uint8_t *right = head->proof->digest.data;
        memcpy(bytes, right, PROOF_SIZE);
        head->proof->digest = (ProtobufCBinaryData){(size_t)((int)PROOF_SIZE + more), bytes};
        assert_int_equal(handshake_heard(&p.listener.handshake, &p.listener.place, head, &e), -1);
        head->proof->digest = (ProtobufCBinaryData){PROOF_SIZE, right};
        peer__head__free_unpacked(head, NULL);
    }
}

static void messages_out_of_order_are_refused(void **state)
{
    struct pair p;
    struct error e;
    Peer__Heartbeat beat = PEER__HEARTBEAT__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    (void)state;
    head.kind_case = PEER__HEAD__KIND_HEARTBEAT;
    head.heartbeat = &beat;
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_int_equal(handshake_heard(&p.listener.handshake, &p.listener.place, &head, &e), -1);
    assert_non_null(strstr(e.text, "did not say hello first"));
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
    assert_int_equal(handshake_heard(&p.listener.handshake, &p.listener.place, &head, &e), -1);
    assert_non_null(strstr(e.text, "did not prove that it has the cluster key"));
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
    p.dialler.heard = 0; /* hello again instead of the proof */
    assert_int_equal(hear(&p.listener, &p.dialler, &e), -1);
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

static void both_find_the_same_keys_to_encrypt_with(void **state)
{
    struct pair p;
    struct link_keys dialler, listener, other;
    (void)state;
    encrypted(&p, 1, &dialler, &listener);
    assert_memory_equal(dialler.send, listener.receive, CIPHER_KEY_SIZE);
    assert_memory_equal(dialler.receive, listener.send, CIPHER_KEY_SIZE);
    assert_memory_not_equal(dialler.send, dialler.receive, CIPHER_KEY_SIZE);
    encrypted(&p, 2, &other, &listener); /* and others for each connection */
    assert_memory_not_equal(dialler.send, other.send, CIPHER_KEY_SIZE);
    assert_memory_not_equal(dialler.receive, other.receive, CIPHER_KEY_SIZE);
}

static void both_must_want_to_encrypt(void **state)
{
    struct pair p;
    struct secrets plain = keys("a", NULL), secret = plain;
    (void)state;
    secret.encrypt = true;
    begin(&p, secret, plain, 1);
    check_refused(&p, &p.listener, "node 5 does not encrypt its links, node 1 does: set encrypt");
    begin(&p, plain, secret, 1);
    check_refused(&p, &p.listener, "node 5 encrypts its links, node 1 does not: set encrypt");
}

static void an_ephemeral_key_of_zeros_is_refused(void **state)
{
    struct pair p;
    struct link_keys dialler, listener;
    struct error e;
    (void)state;
    encrypted(&p, 1, &dialler, &listener);
    memset(p.listener.handshake.theirs.ephemeral, 0, CHALLENGE_SIZE);
    assert_int_equal(handshake_keys(&p.listener.handshake, &p.listener.place, &listener, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_have_the_key),
        cmocka_unit_test(neither_has_a_key),
        cmocka_unit_test(a_key_on_one_side_only),
        cmocka_unit_test(different_keys),
        cmocka_unit_test(the_id_of_a_key_is_not_the_key),
        cmocka_unit_test(keys_are_changed),
        cmocka_unit_test(a_recorded_connection_is_refused),
        cmocka_unit_test(what_comes_back_is_refused),
        cmocka_unit_test(a_proof_of_another_link_is_refused),
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(more_keys_than_there_may_be_are_refused),
        cmocka_unit_test(proofs_of_any_other_size_are_refused),
        cmocka_unit_test(messages_out_of_order_are_refused),
        cmocka_unit_test(both_find_the_same_keys_to_encrypt_with),
        cmocka_unit_test(both_must_want_to_encrypt),
        cmocka_unit_test(an_ephemeral_key_of_zeros_is_refused),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
