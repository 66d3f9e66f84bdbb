/* Handshakes with lies or invalid messages. */
#include <sodium.h>

#include "handshake_fixture.h"
#include "tests/support/cmocka.h"

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
    assert_int_equal(handshake_heard(&p.listener.handshake, &p.listener.place, &head, &e), -1);
    assert_int_equal(e.code, ERROR_PROTOCOL);
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
    assert_int_equal(handshake_heard(&p.listener.handshake, &p.listener.place, &head, &e), -1);
    assert_non_null(strstr(e.text, "did not begin with the proof"));
    begin(&p, keys("a", NULL), keys("a", NULL), 1);
    assert_int_equal(hear(&p.listener, &p.dialler, &e), 0);
    p.dialler.heard = 0; /* hello again instead of the proof */
    assert_int_equal(hear(&p.listener, &p.dialler, &e), -1);
}
