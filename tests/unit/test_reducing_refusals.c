/* The reducing engine: frames that it must refuse, missing memory, and early frames. See reducing_fixture.h. */
#include <malloc.h>

#include "failing_memory.h"
#include "reducing_fixture.h"
#include "tests/support/cmocka.h"

enum { PLUS, MINUS };

/* 0 <- 1 <- 2: node 1 has a child at its + port and the parent at the other. 12 bytes each. */
static const struct how line = {.dims = "3m",
                                .type = REDUCTION_UINT32,
                                .operation = REDUCTION_SUM,
                                .everywhere = true,
                                .unchecked = true,
                                .elements = 3};
static const uint8_t bytes[64] = "abcdefghijkl";

struct frame {
    unsigned port;
    uint32_t round;
    size_t pieces;
    uint32_t piece[4];
    size_t sizes;
    uint32_t length;
};

static int feed(struct net *net, const struct frame *frame, struct error *e)
{
    struct peer_streamed_data data = {0};
    uint32_t size = 12;

    data.exchange = NET_HANDLE;
    data.round = frame->round;
    data.n_pieces = frame->pieces;
    data.pieces = (uint32_t *)(uintptr_t)frame->piece;
    data.n_sizes = frame->sizes;
    data.sizes = &size;
    const struct peer_message head = {.kind = PEER_STREAMED_DATA, .streamed_data = data};
    return net_feed(net, 1, frame->port, &head, bytes, frame->length, e);
}

/* Node 1 refuses the frame, after a contribution has arrived (or not). */
static void refuses(const struct how *how, bool before, const struct frame *bad, const char *text)
{
    const struct frame good = {.port = PLUS, .pieces = 1, .length = 12};
    struct net *net = net_open(how, 1);
    struct error e;

    engine_admit(net->member[1].engine, 0);
    if (before)
        assert_int_equal(feed(net, &good, &e), 0);
    assert_fails(feed(net, bad, &e), e, ERROR_PROTOCOL, text);
    assert_null(engine_failed(net->member[1].engine)); /* the peer's fault, not ours */
    assert_int_equal(net->member[1].engine->rounds_finished, 0);
    net_close(net);
}

TEST(frames_that_are_not_expected_are_refused)
{
    struct how other = line;
    struct frame bad;

    bad = (struct frame){.port = PLUS, .length = 12};
    refuses(&line, false, &bad, "a frame without pieces");
    bad = (struct frame){.port = PLUS, .pieces = 1, .sizes = 1, .length = 12};
    refuses(&line, false, &bad, "1 size for pieces whose sizes are known");
    bad = (struct frame){.port = PLUS, .pieces = 1, .piece = {1}, .length = 12};
    refuses(&line, false, &bad, "piece 1 out of range: the channel has ");
    bad = (struct frame){.port = PLUS, .pieces = 1, .piece = {UINT32_MAX}, .length = 12};
    refuses(&line, true, &bad, "piece 4294967295 out of range: the channel has ");
    bad = (struct frame){.port = PLUS, .pieces = 1, .length = 10};
    refuses(&line, false, &bad, "2 bytes less than");
    bad = (struct frame){.port = PLUS, .pieces = 1};
    refuses(&line, false, &bad, "12 bytes less than");
    bad = (struct frame){.port = PLUS, .pieces = 1, .length = 13};
    refuses(&line, false, &bad, "1 byte more than");
    bad = (struct frame){.port = PLUS, .pieces = 1, .length = 12};
    refuses(&line, true, &bad, "piece 0 arrived twice");
    bad = (struct frame){.port = PLUS, .pieces = 2, .length = 24}; /* twice in one frame */
    refuses(&line, false, &bad, "piece 0 arrived twice");
    bad = (struct frame){.port = PLUS, .pieces = 1, .round = 1, .length = 12};
    refuses(&line, false, &bad, "data of round 1 ");
    bad = (struct frame){.port = PLUS, .pieces = 1, .round = 128, .length = 12};
    refuses(&line, false, &bad, "data of round 128 ");

    bad = (struct frame){.port = MINUS, .pieces = 1, .length = 12};
    refuses(&line, false, &bad, "a result of piece 0");
    refuses(&line, true, &bad, "a result of piece 0");
    other.everywhere = false;
    refuses(&other, true, &bad, "piece 0 out of range: the channel has ");
    other.unchecked = false;
    bad = (struct frame){.port = PLUS, .pieces = 1, .length = 7};
    refuses(&other, false, &bad, "a frame without a digest");
}

TEST(frames_of_other_kinds_are_refused)
{
    struct net *net = net_open(&line, 1);
    struct peer_stepped_data stepped = {0};
    const struct peer_clear clear = {0};
    struct error e;
    const struct peer_message head = {.kind = PEER_STEPPED_DATA, .stepped_data = stepped};
    assert_fails(net_feed(net, 1, PLUS, &head, bytes, 12, &e), e, ERROR_PROTOCOL, "");
    assert_fails(engine_clear(net->member[1].engine, PLUS, &clear, &e), e, ERROR_PROTOCOL, "");
    net_close(net);
}

/* A result may arrive only once, after our contribution has left. */
TEST(results_come_once)
{
    const struct frame up = {.port = PLUS, .pieces = 1, .length = 12};
    const struct frame down = {.port = MINUS, .pieces = 1, .length = 12};
    struct net *net = net_open(&line, 1);
    struct member *m = &net->member[1];
    struct error e;

    engine_admit(m->engine, 0);
    assert_int_equal(feed(net, &up, &e), 0);
    outgoing_free(router_outgoing(m->f.router), engine_next(m->engine, MINUS));
    assert_int_equal(feed(net, &down, &e), 0);
    assert_memory_equal(m->result[0], bytes, 12);
    assert_int_equal(feed(net, &down, &e), -1);
    net_close(net);
}

/* Random frames in any state. */
TEST(random_frames_do_no_harm)
{
    static const struct how hows[] = {
        {.dims = "2x3",
         .algorithm = "balanced",
         .type = REDUCTION_INT16,
         .operation = REDUCTION_XOR,
         .everywhere = true,
         .unchecked = true,
         .elements = 7,
         .per_round = 3,
         .window = 2},
        {.dims = "3x3m",
         .root = 3,
         .type = REDUCTION_FLOAT64,
         .operation = REDUCTION_MIN,
         .everywhere = true,
         .unchecked = true,
         .elements = 0},
    };
    uint64_t random = 1, accepted = 0;

    for (unsigned run = 0; run < 400; run++) {
        struct net *net = net_open(&hows[run % 2], run);
        for (uint32_t i = 0; i < net->torus.nodes; i++)
            engine_admit(net->member[i].engine, 0);
        for (unsigned i = 0; i < 30; i++) {
            struct peer_streamed_data data = {0};
            uint32_t piece[3];
            struct error e;
            for (unsigned j = 0; j < 3; j++) {
                random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
                piece[j] = (uint32_t)(random >> 40) % 6;
            }
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            data.round = (uint32_t)(random >> 60) % 3;
            data.n_pieces = 1 + (random >> 50) % 3;
            data.pieces = piece;
            const struct peer_message head = {.kind = PEER_STREAMED_DATA, .streamed_data = data};
            uint32_t rank = (uint32_t)(random >> 33) % net->torus.nodes;
            unsigned port = (unsigned)(random >> 20) % 4;
            uint32_t length = run % 2 == 1 ? 0 : 6 * (uint32_t)data.n_pieces;
            accepted += net_feed(net, rank, port, &head, bytes, length, &e) == 0;
            struct outgoing *frame = engine_next(net->member[rank].engine, port);
            if (frame != NULL)
                outgoing_free(router_outgoing(net->member[rank].f.router), frame);
        }
        net_close(net);
    }
    assert_in_range(accepted, 100, 400 * 30 - 100);
}

/* --- memory --- */

static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Delivers all frames to node 0. Returns by how much its engine has grown. */
static uint64_t feed_all(struct net *net)
{
    struct member *m = &net->member[0];
    uint64_t grown = 0;

    for (unsigned port = 0; port < torus_ports(&net->torus); port++)
        for (struct packet *p = m->first[port]; p != NULL; p = p->next) {
            struct error e;
            size_t before = allocated();
            assert_int_equal(net_feed(net, 0, port, p->head, p->body, p->length, &e), 0);
            grown += allocated() - before;
        }
    return grown;
}

/* All data of its children may arrive before the node has called. */
TEST(a_node_keeps_no_more_than_twice_the_blocks_of_its_children)
{
    struct how how = {
        .dims = "4x4", .type = REDUCTION_FLOAT64, .operation = REDUCTION_SUM, .window = 2};

    for (unsigned i = 0; i < 8; i++) {
        how.algorithm = i % 2 == 0 ? "balanced" : NULL;
        how.everywhere = i / 2 % 2 == 0;
        how.elements = i / 4 == 0 ? 6 : 1000;
        how.per_round = (uint32_t)how.elements / 2;
        struct net *net = net_open(&how, i);
        struct member *m = &net->member[0];
        uint64_t contributions = 0, results = 0;
        for (uint32_t j = 0; j < m->trees.count; j++) {
            uint64_t size = net_size(net, m->trees.tree[j].owner);
            contributions += m->trees.tree[j].children * size;
            results += m->trees.tree[j].children > 0 ? size : 0;
        }
        uint64_t least = contributions + (how.everywhere ? results : 0);

        for (uint32_t rank = 1; rank < 16; rank++)
            while (net->member[rank].admitted < 2)
                engine_admit(net->member[rank].engine, net->member[rank].admitted++);
        m->admitted = net->rounds; /* it is late */
        m->deaf = true;
        net_run(net);
        uint64_t grown = feed_all(net);
        assert_true(grown == 0 || grown >= contributions); /* 0: a sanitizer does not tell */
        assert_true(grown <= 2 * least + 3 * SLAB_SIZE);
        net_close(net);
    }
}

static bool run_out_of_memory(const struct how *how, uint64_t seed, unsigned after)
{
    struct net *net;
    bool whole = true;

    memory_fails(after);
    net = net_open(how, seed);
    for (uint32_t rank = 0; rank < net->torus.nodes; rank++)
        whole = whole && net->member[rank].engine != NULL;
    if (whole)
        net_run(net);
    bool failed = memory_failed();
    if (!failed)
        net_check(net);
    else
        assert_true(net_check_part(net));
    for (uint32_t rank = 0; rank < net->torus.nodes && whole; rank++)
        if (engine_failed(net->member[rank].engine) != NULL)
            assert_int_equal(engine_failed(net->member[rank].engine)->code, ERROR_MEMORY);
    net_close(net);
    return failed;
}

TEST(memory_may_be_over_at_any_moment)
{
    const struct how hows[] = {
        {.dims = "2x2", .algorithm = "balanced", .elements = 20, .per_round = 9, .window = 2},
        {.dims = "3", .root = 1, .everywhere = true, .elements = 6000},
    };

    for (unsigned i = 0; i < 2; i++) {
        struct how how = hows[i];
        unsigned after = 0;
        how.type = REDUCTION_INT32;
        how.operation = REDUCTION_SUM;
        while (run_out_of_memory(&how, i, after))
            after++;
        assert_in_range(after, 30, 1000);
    }
}

/* --- invalid operations --- */

TEST(invalid_operations_are_not_opened)
{
    struct net *net = net_open(&line, 1);
    struct member *m = &net->member[0];
    struct reducing_options options = net->options;
    struct engine_setup setup = m->setup;
    struct error e;

    options.operation = REDUCTION_OPERATORS;
    assert_null(reducing_new(&setup, &m->trees, &options, &e));
    assert_int_equal(e.code, ERROR_USAGE);
    options = net->options;
    options.type = REDUCTION_INT64;
    assert_null(reducing_new(&setup, &m->trees, &options, &e));
    assert_contains(e.text, "the block for node 0");
    options = net->options;
    setup.round_bytes = 6;
    assert_null(reducing_new(&setup, &m->trees, &options, &e));
    assert_int_equal(e.code, ERROR_USAGE);
    setup.round_bytes = 0;
    assert_null(reducing_new(&setup, &m->trees, &options, &e));
    assert_int_equal(e.code, ERROR_USAGE);
    net_close(net);
}
