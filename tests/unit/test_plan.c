/* One plan worked out by hand: ar on a ring of 4, node 0. tests/contract has all the others. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/plan.h"
#include "tests/support/cmocka.h"

enum { PLUS = 0, MINUS = 1 };

static void build(struct plan *p, const char *torus, const char *algorithm, uint32_t rank)
{
    struct torus t;
    struct error e;
    assert_int_equal(torus_parse(&t, torus, &e), 0);
    if (plan_build(p, &t, algorithm_find(algorithm), rank, &e) != 0)
        fail_msg("%s", e.text);
}

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
TEST(ring_of_4)
{
    struct plan p;

    build(&p, "4", "ar", 0);
    assert_int_equal(p.rank, 0);
    assert_int_equal(p.steps, 2);
    assert_int_equal(p.slots, 0);
    assert_int_equal(p.peak_transit, 0);

    assert_int_equal(p.sends, 3);
    check_message(&p.send[0], 0, PLUS, 1, 0, 1);
    check_block(&p, p.send[0].first, 0, 1);
    check_message(&p.send[1], 0, MINUS, 1, 0, 1);
    check_block(&p, p.send[1].first, 0, 3);
    check_message(&p.send[2], 1, PLUS, 2, 0, 1);
    check_block(&p, p.send[2].first, 0, 2);

    assert_int_equal(p.arrivals, 4);
    check_message(&p.arrival[0], 0, PLUS, 1, 0, 1);
    check_block(&p, p.arrival[0].first, 1, 0);
    check_message(&p.arrival[1], 0, MINUS, 1, 0, 1);
    check_block(&p, p.arrival[1].first, 3, 0);
    check_message(&p.arrival[2], 1, PLUS, 2, 1, 1); /* 1 -> 3, relayed */
    check_message(&p.arrival[3], 1, MINUS, 2, 0, 1);
    check_block(&p, p.arrival[3].first, 2, 0);
    plan_free(&p);
}

static const struct torus ring = {.dims = 1};

TEST(port_totals)
{
    struct plan p;
    uint64_t blocks, messages;

    build(&p, "4", "ar", 0);
    plan_port_totals(&p, &ring, PLUS, &blocks, &messages);
    assert_int_equal(blocks, 2); /* 0 -> 1, 0 -> 2 */
    assert_int_equal(messages, 2);
    plan_port_totals(&p, &ring, MINUS, &blocks, &messages);
    assert_int_equal(blocks, 2); /* 0 -> 3, and 1 -> 3 on its way */
    assert_int_equal(messages, 1);
    plan_free(&p);
}

TEST(arrivals_are_found)
{
    struct plan p;

    build(&p, "4", "ar", 0);
    assert_ptr_equal(plan_arrival(&p, 1, PLUS, 2, 1), &p.arrival[2]);
    assert_null(plan_arrival(&p, 1, PLUS, 2, 0));
    assert_null(plan_arrival(&p, 1, PLUS, 1, 1));
    assert_null(plan_arrival(&p, 0, PLUS, 2, 1));
    assert_null(plan_arrival(&p, 2, PLUS, 2, 1));
    /* Numbers from a peer that would run into each other in a packed key. */
    assert_null(plan_arrival(&p, 1u << 28, PLUS, 1, 0));
    assert_null(plan_arrival(&p, 0, 16 + PLUS, 2, 1));
    assert_null(plan_arrival(&p, UINT32_MAX, UINT8_MAX, UINT16_MAX, UINT16_MAX));
    plan_free(&p);
}

/* A block that waits has one slot, from the message that brings it to the message that takes it on. */
TEST(transit_has_slots)
{
    struct plan p;
    unsigned brought[64] = {0}, taken[64] = {0};

    build(&p, "4x4", "at2", 5);
    assert_in_range(p.slots, 1, 64);
    assert_in_range(p.peak_transit, 1, p.slots);
    for (uint32_t i = 0; i < p.arrivals; i++)
        for (uint32_t j = 0; p.arrival[i].left == 0 && j < p.arrival[i].blocks; j++) {
            const struct plan_block *b = &p.block[p.arrival[i].first + j];
            assert_int_equal(b->slot == PLAN_NO_SLOT, b->destination == 5);
            if (b->slot != PLAN_NO_SLOT)
                brought[b->slot]++;
        }
    for (uint32_t i = 0; i < p.sends; i++)
        for (uint32_t j = 0; j < p.send[i].blocks; j++) {
            const struct plan_block *b = &p.block[p.send[i].first + j];
            assert_int_equal(b->slot == PLAN_NO_SLOT, b->source == 5);
            if (b->slot != PLAN_NO_SLOT)
                taken[b->slot]++;
        }
    for (uint32_t slot = 0; slot < p.slots; slot++) {
        assert_int_equal(brought[slot], 1);
        assert_int_equal(taken[slot], 1);
    }
    plan_free(&p);
}

TEST(nobody_else)
{
    struct plan p;
    uint64_t blocks, messages;

    build(&p, "1x1", "at2", 0);
    assert_int_equal(p.steps, 0);
    assert_int_equal(p.sends, 0);
    assert_int_equal(p.arrivals, 0);
    assert_int_equal(p.blocks, 0);
    assert_null(plan_arrival(&p, 0, 0, 1, 0));
    plan_port_totals(&p, &ring, 0, &blocks, &messages);
    assert_int_equal(blocks + messages, 0);
    plan_free(&p);
    plan_free(&p); /* does no harm */
}
