/* Handshakes that lie, or are not as they must be. */
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "handshake_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(more_keys_than_there_may_be_are_refused),
        cmocka_unit_test(proofs_of_any_other_size_are_refused),
        cmocka_unit_test(messages_out_of_order_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
