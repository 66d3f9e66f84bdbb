/* Handshakes: keys, replays, reflections, encryption. */
#include <sodium.h>

#include "handshake_fixture.h"
#include "tests/support/cmocka.h"

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
    assert_int_equal(handshake_heard(&p.listener.handshake, &p.listener.place, &head, &e), -1);
    assert_int_equal(e.code, ERROR_PROTOCOL);
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
    assert_int_equal(
        hear_bytes(&p.listener, recorded.dialler.said[1], recorded.dialler.length[1], &e), -1);
    assert_int_equal(e.code, ERROR_PROTOCOL);
    assert_int_equal(
        hear_bytes(&p.dialler, recorded.listener.said[0], recorded.listener.length[0], &e), 0);
    assert_int_equal(
        hear_bytes(&p.dialler, recorded.listener.said[1], recorded.listener.length[1], &e), -1);
    assert_int_equal(e.code, ERROR_PROTOCOL);
    assert_int_equal(p.dialler.says, 1); /* it has proved nothing to a stranger */
}

TEST(reflected_messages_are_refused)
{
    struct pair p;
    struct error e;

    /* A listener that returns the dialler's messages. */
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_int_equal(hear_bytes(&p.dialler, p.dialler.said[0], p.dialler.length[0], &e), -1);
    assert_non_null(strstr(e.text, "reflection"));
    /* A dialler that returns the listener's proof. */
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
    assert_int_equal(hear_bytes(&p.listener, p.listener.said[1], p.listener.length[1], &e), -1);
    assert_non_null(strstr(e.text, "reflection"));
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
    assert_int_equal(hear_bytes(&two.listener, one.dialler.said[1], one.dialler.length[1], &e), -1);
    assert_int_equal(e.code, ERROR_PROTOCOL);
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
