/* A node's reports about kept output of earlier attempts. */
#include "line_fixture.h"
#include "tests/support/cmocka.h"

#define SPANS_MOST 6000u

static bool say_arrived_of(struct exchange_fixture *n, unsigned port, uint32_t handle,
                           uint32_t node, const uint64_t *spans, size_t count)
{
    const struct peer_message message = {
        .kind = PEER_ARRIVED,
        .arrived = {.exchange = handle, .node = node, .n_spans = 3 * count, .spans = spans}};

    return xf_say(n, port, &message);
}

static bool say_arrived(struct exchange_fixture *n, unsigned port, uint32_t node,
                        const uint64_t *spans, size_t count)
{
    return say_arrived_of(n, port, XF_HANDLE, node, spans, count);
}

static void open_resumed(struct exchange_fixture *n)
{
    struct xf_prepare p;

    line_open(n, 1);
    xf_prepare_init(&p, n);
    xf_prepare_generated(&p);
    p.message.prepare.round_bytes = 0;
    p.message.prepare.avoids_links = true;
    p.message.prepare.resumes = "0-0000004d-5";
    p.spec.block_bytes = 1000000;
    assert_true(xf_say(n, PARENT, &p.message));
    assert_int_equal(xf_state(n), EXCHANGE_OPENING);
    (void)xf_drain(n);
}

/* So many spans of one byte, in the block from this node. */
static size_t fill_spans(uint64_t *spans, uint32_t source, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        spans[3 * i] = source;
        spans[3 * i + 1] = 2 * i;
        spans[3 * i + 2] = 1;
    }
    return count;
}

TEST(kept_bytes_are_reported_once)
{
    static uint64_t spans[3 * SPANS_MOST];
    struct exchange_fixture n;

    (void)fill_spans(spans, 1, 2);
    open_resumed(&n); /* up */
    assert_true(say_arrived(&n, CHILD, 2, spans, 2));
    assert_int_equal(xf_hear(&n, PARENT), PEER_ARRIVED);
    assert_false(say_arrived(&n, CHILD, 2, spans, 2));
    xf_close(&n);
    for (uint32_t node = 0; node < 2; node++) { /* of nodes that are not behind it */
        open_resumed(&n);
        assert_false(say_arrived(&n, CHILD, node, spans, 2));
        assert_int_equal(xf_hear(&n, PARENT), PEER_NOTHING);
        xf_close(&n);
    }
    open_resumed(&n); /* down: all nodes, and then no more */
    assert_true(say_arrived(&n, CHILD, 2, spans, 2));
    for (uint32_t node = 0; node < 3; node++)
        assert_true(say_arrived(&n, PARENT, node, spans, 2));
    assert_false(say_arrived(&n, PARENT, 2, spans, 2));
    xf_close(&n);
}

TEST(spans_are_bounded)
{
    static uint64_t spans[3 * SPANS_MOST];
    const size_t most = 16 * 1024 / 3;
    struct exchange_fixture n;

    open_resumed(&n);
    assert_true(say_arrived(&n, PARENT, 0, spans, fill_spans(spans, 1, most)));
    assert_int_equal(xf_hear(&n, CHILD), PEER_ARRIVED);
    assert_false(say_arrived(&n, PARENT, 2, spans, fill_spans(spans, 1, most + 1)));
    xf_close(&n);
    open_resumed(&n); /* of another node's blocks, which this one only passes on */
    assert_false(say_arrived(&n, PARENT, 2, spans, fill_spans(spans, 0, most + 1)));
    xf_close(&n);
}

/* So are those of all exchanges. */
TEST(spans_of_all_exchanges_are_bounded)
{
    static uint64_t spans[3 * SPANS_MOST];
    const size_t most = 16 * 1024 / 3;
    struct exchange_fixture n;
    struct xf_prepare p;
    size_t held = 0;
    bool busy = false;

    (void)fill_spans(spans, 1, most);
    line_open(&n, 1);
    for (unsigned i = 1; i <= 32 && !busy; i++) {
        uint32_t root = i % 2 == 0 ? 0 : 2;
        char id[EXCHANGE_ID_SIZE];
        xf_prepare_init(&p, &n);
        xf_prepare_generated(&p);
        (void)snprintf(id, sizeof id, "%u-0000004d-%u", root, i);
        p.message.prepare.id = p.message.prepare.resumes = id;
        p.message.prepare.root = root;
        p.message.prepare.exchange = XF_HANDLE + i;
        p.message.prepare.round_bytes = 0;
        p.message.prepare.avoids_links = true;
        p.spec.block_bytes = 1000000;
        assert_true(xf_say(&n, root == 0 ? PARENT : CHILD, &p.message));
        for (uint32_t node = 0; node < 3 && !busy; node++) {
            assert_true(
                say_arrived_of(&n, root == 0 ? PARENT : CHILD, XF_HANDLE + i, node, spans, most));
            busy = xf_state_of(&n, id) == EXCHANGE_FAILING;
            held += busy ? 0 : most;
        }
        (void)xf_drain(&n);
    }
    assert_true(busy);
    assert_in_range(held, 200 * 1024, 256 * 1024);
    xf_close(&n);
}
