/* One plan worked out by hand: ar on a ring of 4, node 0. tests/contract has all the others. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/damage.h"
#include "daemon/lib/schedule/plan.h"
#include "daemon/lib/schedule/predict.h"
#include "daemon/lib/schedule/tree.h"
#include "tests/support/cmocka.h"

enum { PLUS = 0, MINUS = 1 };

static void build(struct plan *p, const char *torus, const char *algorithm, uint32_t rank)
{
    struct torus t;
    struct error e;
    assert_int_equal(torus_parse(&t, torus, &e), 0);
    assert_success(plan_build(p, &t, algorithm_find(algorithm), rank, &e), e);
}

/* PLAN_TEST(DIMS, ALGORITHM, RANK, NAME) { ... }: a test with a node's plan, `p`. */
#define PLAN_TEST(dims, algorithm, rank, name)                                                     \
    TEST_BETWEEN(struct plan, p, build(&fixture, dims, algorithm, rank), plan_free(&fixture), name)

static void check_message(const struct plan_message *m, uint32_t step, uint8_t port, uint16_t hops,
                          uint16_t left, uint32_t blocks)
{
    assert_int_equal(m->step, step);
    assert_int_equal(m->port, port);
    assert_int_equal(m->hops, hops);
    assert_int_equal(m->left, left);
    assert_int_equal(m->blocks, blocks);
}

static void check_block(const struct plan *p, uint32_t index, uint32_t source, uint32_t destination)
{
    assert_true(index < p->blocks);
    assert_int_equal(p->block[index].source, source);
    assert_int_equal(p->block[index].destination, destination);
    assert_int_equal(p->block[index].segment, 0);
    assert_int_equal(p->block[index].slot, PLAN_NO_SLOT);
}

/* Step 0: a hop to each neighbour, and one back from each. Step 1: even nodes send their opposite's
 * block two hops +, odd nodes two hops -; so node 0 relays one of an odd node each way. */
PLAN_TEST("4", "ar", 0, ring_of_4)
{
    assert_int_equal(p->rank, 0);
    assert_int_equal(p->steps, 2);
    assert_int_equal(p->slots, 0);
    assert_int_equal(p->peak_transit, 0);

    assert_int_equal(p->sends, 3);
    check_message(&p->send[0], 0, PLUS, 1, 0, 1);
    check_block(p, p->send[0].first, 0, 1);
    check_message(&p->send[1], 0, MINUS, 1, 0, 1);
    check_block(p, p->send[1].first, 0, 3);
    check_message(&p->send[2], 1, PLUS, 2, 0, 1);
    check_block(p, p->send[2].first, 0, 2);

    assert_int_equal(p->arrivals, 4);
    check_message(&p->arrival[0], 0, PLUS, 1, 0, 1);
    check_block(p, p->arrival[0].first, 1, 0);
    check_message(&p->arrival[1], 0, MINUS, 1, 0, 1);
    check_block(p, p->arrival[1].first, 3, 0);
    check_message(&p->arrival[2], 1, PLUS, 2, 1, 1); /* 1 -> 3, relayed */
    check_message(&p->arrival[3], 1, MINUS, 2, 0, 1);
    check_block(p, p->arrival[3].first, 2, 0);
}

PLAN_TEST("4", "ar", 0, arrivals_are_found)
{
    assert_ptr_equal(plan_arrival(p, 1, PLUS, 2, 1), &p->arrival[2]);
    assert_null(plan_arrival(p, 1, PLUS, 2, 0));
    assert_null(plan_arrival(p, 1, PLUS, 1, 1));
    assert_null(plan_arrival(p, 0, PLUS, 2, 1));
    assert_null(plan_arrival(p, 2, PLUS, 2, 1));
    /* Numbers from a peer that would run into each other in a packed key. */
    assert_null(plan_arrival(p, 1u << 28, PLUS, 1, 0));
    assert_null(plan_arrival(p, 0, 16 + PLUS, 2, 1));
    assert_null(plan_arrival(p, UINT32_MAX, UINT8_MAX, UINT16_MAX, UINT16_MAX));
}

/* A block that waits has one slot, from the message that brings it to the message that takes it on. */
PLAN_TEST("4x4", "at2", 5, transit_has_slots)
{
    unsigned brought[64] = {0}, taken[64] = {0};

    assert_in_range(p->slots, 1, 64);
    assert_in_range(p->peak_transit, 1, p->slots);
    for (uint32_t i = 0; i < p->arrivals; i++)
        for (uint32_t j = 0; p->arrival[i].left == 0 && j < p->arrival[i].blocks; j++) {
            const struct plan_block *b = &p->block[p->arrival[i].first + j];
            assert_int_equal(b->slot == PLAN_NO_SLOT, b->destination == 5);
            if (b->slot != PLAN_NO_SLOT)
                brought[b->slot]++;
        }
    for (uint32_t i = 0; i < p->sends; i++)
        for (uint32_t j = 0; j < p->send[i].blocks; j++) {
            const struct plan_block *b = &p->block[p->send[i].first + j];
            assert_int_equal(b->slot == PLAN_NO_SLOT, b->source == 5);
            if (b->slot != PLAN_NO_SLOT)
                taken[b->slot]++;
        }
    for (uint32_t slot = 0; slot < p->slots; slot++) {
        assert_int_equal(brought[slot], 1);
        assert_int_equal(taken[slot], 1);
    }
}

TEST(nobody_else)
{
    struct plan p;

    build(&p, "1x1", "at2", 0);
    assert_int_equal(p.steps, 0);
    assert_int_equal(p.sends, 0);
    assert_int_equal(p.arrivals, 0);
    assert_int_equal(p.blocks, 0);
    assert_null(plan_arrival(&p, 0, 0, 1, 0));
    plan_free(&p);
    plan_free(&p); /* does no harm */
}

enum { MOST = 128 };

/* For every root: every node has a parent one hop nearer to the root, has as children exactly the nodes whose parent it
 * is, and so is reached exactly once. */
static void check_trees(const struct torus *t)
{
    assert_true(t->nodes <= MOST);
    for (uint32_t root = 0; root < t->nodes; root++) {
        struct tree_node node[MOST];
        uint32_t children = 0;

        for (uint32_t rank = 0; rank < t->nodes; rank++)
            tree_node(t, root, rank, &node[rank]);
        for (uint32_t rank = 0; rank < t->nodes; rank++) {
            const struct tree_node *n = &node[rank];

            if (rank == root) {
                assert_int_equal(n->parent, -1);
            } else {
                assert_in_range(n->parent, 0, torus_ports(t) - 1);
                uint32_t parent = torus_neighbour(t, rank, (unsigned)n->parent);
                assert_true(parent != TORUS_NO_NODE);
                assert_int_equal(torus_distance(t, root, parent) + 1,
                                 torus_distance(t, root, rank));
            }
            assert_in_range(n->children, 0, torus_ports(t));
            for (unsigned i = 0; i < n->children; i++) {
                uint32_t child = torus_neighbour(t, rank, n->child[i]);
                assert_true(child != TORUS_NO_NODE);
                assert_int_equal(node[child].parent, torus_port_opposite(t, n->child[i]));
                assert_true(i == 0 || n->child[i] > n->child[i - 1]);
            }
            children += n->children;
        }
        assert_int_equal(children, t->nodes - 1);
    }
}

TEST(every_root_reaches_every_node)
{
    static const char *const shapes[] = {
        "1",   "2",   "2m",   "3",     "8",     "7m",    "1x1",           "2x2",
        "4x4", "5x7", "4x8m", "3mx4m", "2x1x3", "3x4x5", "2x2x2x2x2x2x2", "2mx3x2x3m"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t;
        assert_int_equal(torus_parse(&t, shapes[i], NULL), 0);
        check_trees(&t);
    }
}

/* The path from the root is the dimension-ordered one. */
TEST(shape_on_4x4)
{
    struct torus t;
    struct tree_node n;

    assert_int_equal(torus_parse(&t, "4x4", NULL), 0);
    tree_node(&t, 0, 0, &n);
    assert_int_equal(n.children, 4);
    tree_node(&t, 0, 4, &n); /* one row on: still in the root's column, spreads its row */
    assert_int_equal(n.parent, torus_port(&t, 0, -1));
    assert_int_equal(n.children, 3); /* +0 to the opposite row, +1, -1 */
    tree_node(&t, 0, 5, &n);
    assert_int_equal(n.parent, torus_port(&t, 1, -1));
    assert_int_equal(n.children, 1); /* +1 to the opposite column */
    assert_int_equal(n.child[0], torus_port(&t, 1, 1));
    tree_node(&t, 0, 7, &n);
    assert_int_equal(n.parent, torus_port(&t, 1, 1));
    assert_int_equal(n.children, 0);
}

/* The length of frames that relays pass on. */

enum { ONE = 1400, TWO = 2828 }; /* bytes of blocks in full packets */

TEST(frames_on_slow_cables_are_packets)
{
    assert_int_equal(relay_frame(2.5, 32, 0), ONE);
    assert_int_equal(relay_frame(10, 8, 0), ONE);
    assert_int_equal(relay_frame(10, 1, 0), ONE); /* never less than a packet */
    assert_int_equal(relay_frame(100, 1, 0), ONE);
    assert_int_equal(relay_frame(1e-6, 1, 0), ONE);
}

TEST(frames_are_longer_on_faster_links)
{
    uint32_t before = 0;

    assert_int_equal(relay_frame(20, 8, 0), TWO);
    assert_int_equal(relay_frame(160, 1, 0), TWO);
    for (double mbit = 1; mbit < 2000; mbit *= 1.01) {
        uint32_t frame = relay_frame(mbit, 1, 0);
        assert_in_range(frame, ONE, RELAY_FRAME_MOST);
        assert_in_range(frame, before, RELAY_FRAME_MOST);
        /* A frame has one packet less than the link carries in 160 us, or fewer. */
        assert_true(frame == ONE || frame == RELAY_FRAME_MOST || frame <= mbit * 20);
        before = frame;
    }
    assert_int_equal(relay_frame(1000, 1, 0), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame(1e5, 1, 0), RELAY_FRAME_MOST);
}

TEST(processors_with_many_daemons_are_spared)
{
    assert_int_equal(relay_frame(20, 1, 0), ONE);
    assert_int_equal(relay_frame(20, 8, 0), TWO);
    assert_in_range(relay_frame(20, 40, 0), TWO, RELAY_FRAME_MOST - 1);
    assert_int_equal(relay_frame(20, 512, 0), RELAY_FRAME_MOST);
}

TEST(frames_within_the_burst_are_not_cut)
{
    assert_int_equal(relay_frame(10, 8, 64 * 1024), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame(10, 8, UINT64_MAX), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame(10, 8, 1514), ONE);
    assert_int_equal(relay_frame(10, 8, 3000), TWO);
    assert_int_equal(relay_frame(100, 8, 3000), relay_frame(100, 8, 0));
}

TEST(links_of_unknown_rate_have_long_frames)
{
    assert_int_equal(relay_frame(0, 1, 0), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame(0, 32, 0), RELAY_FRAME_MOST);
}

/* Many frames of a message make hops cheap; then longer ones spare processors and headers. */
TEST(long_messages_have_longer_frames)
{
    assert_int_equal(relay_frame_of(ONE, 0), ONE);
    assert_int_equal(relay_frame_of(ONE, 64 * 1024), ONE);
    assert_int_equal(relay_frame_of(ONE, 64 * TWO), TWO);
    assert_int_equal(relay_frame_of(TWO, 64 * 1024), TWO);
    assert_int_equal(relay_frame_of(ONE, 1024 * 1024), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame_of(ONE, UINT64_MAX), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame_of(RELAY_FRAME_MOST, 1), RELAY_FRAME_MOST);
}

/* Links and nodes that are down: as text, and whether the rest of the torus is connected. */

static struct torus torus_of(const char *dims)
{
    struct torus t;
    struct error e;
    assert_success(torus_parse(&t, dims, &e), e);
    return t;
}

static struct damage read_damage(const char *dims, const char *text)
{
    struct torus t = torus_of(dims);
    struct damage d;
    struct error e;
    assert_success(damage_parse(&d, &t, text, &e), e);
    return d;
}

TEST(read_and_written)
{
    static const char *const cases[][4] = {
        {"4x4", "2:+0,7", "2:+0,7", "link 2:+0"},
        {"4x4", "7,2:+0", "2:+0,7", "link 2:+0"},
        {"4x4", "3:+0,7", "7", ""}, /* one of its own links */
        {"4x4", "7:-0", "3:+0", "link 3:+0"},
        {"4x4", "4:-1", "7:+1", "link 7:+1"},
        {"4x4", "3:+0,3:+0,7:-0", "3:+0", "link 3:+0"},
        {"4x4", "7,7:+0,8:-1", "7,11:+1", "link 11:+1"},
        {"2x3", "0:+0", "0:+0", "link 0:+0"}, /* two links between the same nodes */
        {"2x3", "0:-0", "3:+0", "link 3:+0"},
        {"3m", "0:+0,2", "0:+0,2", "link 0:+0"}};
    char text[100];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct damage d = read_damage(cases[i][0], cases[i][1]), again;
        struct error e;
        assert_string_equal(damage_format(&d, text, sizeof text), cases[i][2]);
        assert_int_equal(damage_parse(&again, &d.torus, text, &e), 0);
        assert_true(damage_equal(&d, &again));
        damage_free(&again);
        assert_string_equal(damage_describe_links(&d, text, sizeof text), cases[i][3]);
        assert_int_equal(damage_copy(&again, &d, &e), 0);
        assert_true(damage_equal(&d, &again));
        assert_false(damage_is_none(&d));
        damage_free(&again);
        damage_free(&d);
    }
}

TEST(refused)
{
    static const char *const cases[][3] = {
        {"4x4", "", "'' is neither"},
        {"4x4", "3:+0,", "'' is neither"},
        {"4x4", "16", "'16': a torus of 4x4 has the nodes 0 to 15"},
        {"4x4", "99999999999999999999", "has the nodes 0 to 15"},
        {"4x4", "-1", "'-1' is neither"},
        {"4x4", "3;+0", "'3;+0' is neither"},
        {"4x4", "3:", "'3:': node 3 of a torus of 4x4 has no link at that port"},
        {"4x4", "3:+2", "has no link at that port"},
        {"4x4", "3:+00", "has no link at that port"},
        {"3m", "2:+0", "node 2 of a torus of 3m has no link at that port"},
        {"1x4", "2:+0", "has no link at that port"},
        {"4x4", "3:+0 ,7", "has no link at that port"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct torus t = torus_of(cases[i][0]);
        struct damage d;
        struct error e;
        assert_fails(damage_parse(&d, &t, cases[i][1], &e), e, ERROR_USAGE, cases[i][2]);
    }
}

TEST(nothing)
{
    struct torus t = torus_of("3x3");
    struct damage d;
    struct error e;
    char text[4];

    assert_int_equal(damage_init(&d, &t, &e), 0);
    assert_true(damage_is_none(&d));
    assert_string_equal(damage_format(&d, text, sizeof text), "");
    damage_add_node(&d, 4);
    assert_false(damage_is_none(&d));
    for (unsigned port = 0; port < 4; port++) {
        assert_false(damage_has_link(&d, 4, port));
        assert_false(damage_has_link(&d, torus_neighbour(&t, 4, port), port ^ 1));
    }
    assert_true(damage_has_link(&d, 0, 0));
    damage_free(&d);
}

/* A text that does not fit is cut between its parts. */
TEST(cut_off)
{
    struct damage d = read_damage("4x4", "0:+0,1:+0,2:+0,3:+0");
    char text[40];

    assert_string_equal(damage_format(&d, text, 20), "0:+0,1:+0,2:+0...");
    assert_string_equal(damage_format(&d, text, 18), "0:+0,1:+0,2:+0...");
    assert_string_equal(damage_format(&d, text, 17), "0:+0,1:+0...");
    assert_string_equal(damage_format(&d, text, 4), "...");
    damage_free(&d);
}

TEST(in_parts)
{
    static const char *const cases[][3] = {
        {"4", "0:+0", NULL},
        {"4", "0:+0,2:+0", "nodes 1, 2 cannot be reached from node 0"},
        {"4", "0:+0,2", "node 1 cannot be reached from node 0"},
        {"4", "0,2", "node 3 cannot be reached from node 1"},
        {"4m", "0:+0", "node 0 cannot be reached from node 1"},
        {"4m", "2:+0", "node 3 cannot be reached from node 0"},
        {"4m", "3", NULL},
        {"2", "0:+0", NULL},
        {"2", "0:+0,1:+0", "cannot be reached"},
        {"2", "0", NULL},
        {"2", "0,1", NULL},
        {"1", "0", NULL},
        {"3x3", "4:+0,4:-0,4:+1,4:-1", "node 4 cannot be reached from node 0"},
        {"3x3", "4:+0,4:-0,4:+1,4:-1,4", NULL},
        {"80m", "40", "64... cannot be reached"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct damage d = read_damage(cases[i][0], cases[i][1]);
        struct error e = {.text = ""};
        int rc = damage_is_connected(&d, &e);
        if (rc != (cases[i][2] == NULL ? 0 : -1) ||
            (rc != 0 && strstr(e.text, cases[i][2]) == NULL))
            fail_msg("%s without %s: %s", cases[i][0], cases[i][1], e.text);
        damage_free(&d);
    }
}

TEST(rates_read_and_written)
{
    static const struct {
        const char *dims, *rates;
        bool both;
        const char *written;
    } cases[] = {
        {"4x4", "6:-1=0.4", false, "6:-1=0.4"},
        {"4x4", "6:-1=0.4", true, "5:+1=0.4,6:-1=0.4"},
        {"4x4", "7:+0=.125,6:-1=0.05", false, "6:-1=0.05,7:+0=0.125"},
        {"4x4", "7:+0=0.33349,6:-1=0.0005", false, "6:-1=0.001,7:+0=0.333"},
        {"4x4", "7:+0=0.5,7:+0=1.0", false, ""},
        {"4x4", "7:+0=1,7:-0=1.", false, ""},
        {"2", "0:+0=0.5", true, "0:+0=0.5,1:-0=0.5"}, /* two links between the same nodes */
        {"3m", "*:+0=0.5", false, "0:+0=0.5,1:+0=0.5"},
        {"3", "*:+0=0.5", true, "0:+0=0.5,0:-0=0.5,1:+0=0.5,1:-0=0.5,2:+0=0.5,2:-0=0.5"},
    };
    char text[100];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct torus t = torus_of(cases[i].dims);
        struct damage d, again;
        struct error e;
        assert_int_equal(damage_init(&d, &t, &e), 0);
        assert_success(damage_parse_rates(&d, cases[i].rates, cases[i].both, &e), e);
        assert_string_equal(damage_format_rates(&d, text, sizeof text), cases[i].written);
        assert_int_equal(damage_is_none(&d), text[0] == '\0');
        assert_string_equal(damage_describe(&d, text, sizeof text), "");
        assert_int_equal(damage_copy(&again, &d, &e), 0);
        assert_true(damage_equal(&d, &again) && damage_equal(&again, &d));
        assert_int_equal(damage_set_rate(&again, 0, 0, 77, &e), 0);
        assert_false(damage_equal(&d, &again) || damage_equal(&again, &d));
        damage_add_link(&d, 0, 0); /* has no rate then */
        damage_add_link(&again, 0, 0);
        assert_true(damage_equal(&d, &again) && damage_equal(&again, &d));
        damage_free(&again);
        damage_free(&d);
    }
}

TEST(rates_refused)
{
    static const char *const cases[][3] = {
        {"4x4", "", "'' is not the rate of a link, such as 6:-1=0.4"},
        {"4x4", "6", "'6' is not the rate"},
        {"4x4", "6:-1", "'6:-1' is not the rate"},
        {"4x4", "6=0.4", "'6=0.4' is not the rate"},
        {"4x4", "6:-1=0.4,7:+0", "'7:+0' is not the rate"},
        {"4x4", "6:-1=0", "'6:-1=0': a rate is a part of that of the fastest links, 0.001 to 1"},
        {"4x4", "6:-1=0.0004", "0.001 to 1"},
        {"4x4", "6:-1=1.001", "0.001 to 1"},
        {"4x4", "6:-1=4294967297", "0.001 to 1"},
        {"4x4", "6:-1=-0.5", "0.001 to 1"},
        {"4x4", "6:-1=0,4", "'6:-1=0': a rate"},
        {"4x4", "6:-1=", "0.001 to 1"},
        {"4x4", "6:-1=.", "0.001 to 1"},
        {"4x4", "6:-1=0.5 ", "0.001 to 1"},
        {"4x4", "6:-1=half", "0.001 to 1"},
        {"4x4", "16:-1=0.5", "'16:-1=0.5': a torus of 4x4 has the nodes 0 to 15"},
        {"4x4", "6:-2=0.5", "'6:-2=0.5': node 6 of a torus of 4x4 has no link at that port"},
        {"4x4", "*:+2=0.5", "'*:+2=0.5': no node of a torus of 4x4 has a link at that port"},
        {"4x4", "*=0.5", "'*=0.5' is not the rate"},
        {"3m", "2:+0=0.5", "node 2 of a torus of 3m has no link"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct torus t = torus_of(cases[i][0]);
        struct damage d;
        struct error e;
        assert_int_equal(damage_init(&d, &t, &e), 0);
        assert_fails(damage_parse_rates(&d, cases[i][1], false, &e), e, ERROR_USAGE, cases[i][2]);
        damage_free(&d);
    }
}

TEST(described_for_people)
{
    struct damage d = read_damage("4x4", "11:+1,2:+0,7");
    char text[100];

    assert_string_equal(damage_describe(&d, text, sizeof text), "link 2:+0, node 7, link 11:+1");
    assert_string_equal(damage_describe(&d, text, 24), "link 2:+0, node 7...");
    damage_free(&d);
}
