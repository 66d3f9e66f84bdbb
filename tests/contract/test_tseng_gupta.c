/* tseng-gupta: the counts that Liu, Gu, Bi, Tu, Dong: Optimal All-to-All Personalized Communication
 * in All-Port Tori, section 1, gives for the direct exchange, and the messages of every step against
 * the rule (daemon/lib/schedule/algorithms/tseng_gupta.c), written out independently: not block by block, but phase by
 * phase, with tours as lists of nodes. */
#include "client/theory/formula.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/contract/printed.h"
#include "tests/support/cmocka.h"

TEST(every_rectangle)
{
    contract_every_rectangle("tseng-gupta", 3);
}

/* 2^(3d-3) steps and blocks, which is the lower bound, no contention, shortest paths. */
TEST(figures)
{
    for (unsigned d = 2; d <= 5; d++) {
        struct torus t = contract_rectangle(1u << d, 1u << d);
        struct schedule_report r = contract_verify(&t, "tseng-gupta");
        struct cost_counts formula;
        uint32_t counts = 1u << (3 * d - 3);

        assert_int_equal(formula_counts(formula_find("tseng-gupta"), &t, &formula, NULL), 0);
        assert_true(formula.startups == counts && formula.transmission == counts);
        assert_int_equal(r.startups, counts);
        assert_int_equal(r.transmission, counts);
        assert_int_equal(r.critical_path, counts);
        assert_int_equal(r.busiest, counts);
        assert_true(r.bound == counts);
        assert_int_equal(r.contended_steps, 0);
        assert_true(r.minimal);
        contract_check_no_gaps(&t, "tseng-gupta");
    }
}

/* ---- Channels -------------------------------------------------------------------------------- */

/* Counts the legs of the block, by channel and step, and by the node that starts them. */
static void count_legs(const struct torus *t, uint32_t source, const struct leg *legs,
                       uint32_t count, uint8_t *load, uint8_t *starts)
{
    uint32_t here = source;

    for (uint32_t i = 0; i < count; i++) {
        unsigned port = torus_port(t, legs[i].dim, legs[i].direction);
        starts[(size_t)legs[i].step * t->nodes + here]++;
        for (uint16_t hop = 0; hop < legs[i].hops; hop++) {
            load[((size_t)legs[i].step * t->nodes + here) * torus_ports(t) + port]++;
            here = torus_neighbour(t, here, port);
        }
    }
}

/* Every channel carries exactly one block in every step. A node starts at most one message in each
 * dimension, 4x4 excepted. */
TEST(every_channel_in_every_step)
{
    const struct algorithm *a = algorithm_find("tseng-gupta");

    for (uint32_t n = 4; n <= 32; n *= 2) {
        struct torus t = contract_rectangle(n, n);
        size_t places = (size_t)n * n * n / 8 * t.nodes, channels = places * torus_ports(&t);
        uint8_t *load = calloc(channels, 1), *starts = calloc(places, 1);

        assert_true(load != NULL && starts != NULL);
        for (uint32_t s = 0; s < t.nodes; s++) {
            for (uint32_t d = 0; d < t.nodes; d++) {
                struct leg legs[2];
                if (s != d)
                    count_legs(&t, s, legs, algorithm_route(a, &t, s, d, 0, legs), load, starts);
            }
        }
        bool busy = true, crowded = false;
        for (size_t i = 0; i < channels; i++)
            busy &= load[i] == 1;
        for (size_t i = 0; i < places; i++)
            crowded |= starts[i] > (n == 4 ? 4 : 2);
        assert_true(busy);
        assert_false(crowded);
        free(load);
        free(starts);
    }
}

/* ---- The rule -------------------------------------------------------------------------------- */

enum { BIGGEST = 64 };

/* What a group of tours does in one direction: where it moves the block of each node of a ring, and
 * the number of the node's tour. */
struct group {
    int to[BIGGEST];
    int tour[BIGGEST];
};

/* The tours of a group, each from the nodes that its two residues stand for. */
static struct group make_group(int n, int g, int direction)
{
    int m = n / 2, between = g != 0 ? g : m / 2, tours = 0;
    struct group group;

    memset(&group, -1, sizeof group);
    for (int i = 0; i < m; i++) {
        if ((i & between & -between) != 0) /* the lowest bit of `between` */
            continue;
        int j = i ^ between;
        int low = i < j ? i : j, high = i < j ? j : i;
        int node[5] = {low, high, low + m, high + m, low + n}; /* in the order of direction + */
        for (int k = 0; k < 4; k++) {
            bool crosses = (direction > 0) == (k % 2 == 0); /* of a tour of group 0 */
            int from = direction > 0 ? node[k] : node[k + 1] % n;
            int to = direction > 0 ? node[k + 1] % n : node[k];
            if (g == 0) {
                from = node[k];
                to = crosses ? (from + m) % n : from;
            }
            assert_int_equal(group.to[from], -1);
            group.to[from] = to;
            group.tour[from] = tours;
        }
        tours++;
    }
    assert_int_equal(tours, m / 2);
    return group;
}

/* Checks the legs of one block of a phase. `step` is the first of the phase's two steps. */
static void check_block(const struct torus *t, const int *from, const int *to, int x_direction,
                        int y_direction, uint32_t step)
{
    int n = (int)t->size[0];
    int direction[2] = {x_direction, y_direction};
    struct block b = {.size = {n, n}, .at = {from[0], from[1]}, .to = {to[0], to[1]}};
    struct leg legs[2];

    for (unsigned i = 0; i < 2; i++) {
        unsigned dim = x_direction == y_direction ? i : 1 - i;
        int hops = ((to[dim] - from[dim]) * direction[dim] + n) % n;
        if (hops != 0)
            send(&b, step + i, dim, direction[dim] * hops);
        assert_int_equal(b.at[dim], to[dim]);
        assert_in_range(hops, 0, n / 2);
    }
    uint32_t count =
        algorithm_route(algorithm_find("tseng-gupta"), t, (uint32_t)(from[0] * n + from[1]),
                        (uint32_t)(to[0] * n + to[1]), 0, legs);
    assert_int_equal(count, b.legs);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(legs[i].step, b.leg[i].step);
        assert_int_equal(legs[i].dim, b.leg[i].dim);
        assert_int_equal(legs[i].hops, b.leg[i].hops);
        assert_int_equal(legs[i].direction, b.leg[i].direction);
    }
}

/* Checks all blocks of a choice of groups and directions. seen[] counts the blocks by source and
 * destination. busy[] counts, by way to pair the tours, order of the dimensions and node, the blocks
 * from the node, and those for it. */
static void check_phases(const struct torus *t, int g0, int g1, int x_direction, int y_direction,
                         uint8_t *seen, uint8_t *busy)
{
    int n = (int)t->size[0], m = n / 2;
    struct group rows = make_group(n, g0, x_direction), columns = make_group(n, g1, y_direction);

    for (int x = 0; x < n; x++) {
        for (int y = 0; y < n; y++) {
            int from[2] = {x, y}, to[2] = {rows.to[x], columns.to[y]};
            int way = rows.tour[x] ^ columns.tour[y] ^ (n == 4 || x_direction > 0 ? 0 : 1);
            size_t source = (size_t)(x * n + y), destination = (size_t)(to[0] * n + to[1]);
            size_t phase = (size_t)(2 * way + (x_direction == y_direction));

            if (source == destination)
                continue;
            seen[source * t->nodes + destination]++;
            busy[(phase * t->nodes + source) * 2]++;
            busy[(phase * t->nodes + destination) * 2 + 1]++;
            check_block(t, from, to, x_direction, y_direction,
                        (uint32_t)(2 * ((g0 * m + g1) * (m / 2) + way)));
        }
    }
}

/* Every block is in one phase. From 8x8 on, no node is the source, or the destination, of two
 * blocks of a phase. */
TEST(messages_follow_the_rule)
{
    for (uint32_t n = 4; n <= BIGGEST; n *= 2) {
        struct torus t = contract_rectangle(n, n);
        uint32_t m = n / 2;
        size_t pairs = (size_t)t.nodes * t.nodes, places = (size_t)m * t.nodes * 2;
        uint8_t *seen = calloc(pairs, 1), *busy = calloc(places, 1);
        uint8_t most = 0;

        assert_true(seen != NULL && busy != NULL);
        for (uint32_t groups = 0; groups < m * m; groups++) {
            memset(busy, 0, places);
            for (int directions = 0; directions < 4; directions++)
                check_phases(&t, (int)(groups / m), (int)(groups % m), directions % 2 == 0 ? 1 : -1,
                             directions / 2 == 0 ? 1 : -1, seen, busy);
            for (size_t i = 0; i < places; i++)
                most = busy[i] > most ? busy[i] : most;
        }
        assert_int_equal(most, n == 4 ? 2 : 1);
        bool once = true;
        for (size_t i = 0; i < pairs; i++)
            once &= seen[i] == (i / t.nodes != i % t.nodes);
        assert_true(once);
        free(seen);
        free(busy);
    }
}

TEST(refusals)
{
    static const char *const tori[] = {"2x2",  "8x16",  "12x12", "8",
                                       "8x8m", "8x8x8", "1x8",   "512x512"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++)
        contract_refused("tseng-gupta", tori[i]);
}
