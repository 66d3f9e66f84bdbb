/* Exchanges with one port and with k ports: the counts of client/doc/exchange-with-few-ports.md. Every route is followed here
 * by plain counting, apart from the verifier, which has to agree. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/product.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

enum { MOST_LEGS = 256 };

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- One port -------------------------------------------------------------------------------- */

/* The steps and the blocks of an exchange on one line or ring, as the page has them. */
static uint64_t steps_on(uint64_t n, bool ring)
{
    const uint64_t h = n / 2;

    if (!ring || n == 2)
        return n - 1;
    if (n <= 9)
        return larger(n - 1, (n * n / 4 + 1) / 2);
    return n % 2 == 0 ? (n + 3) / 4 + 1 : 2 * ((h + 1) / 2) + h + (h + 1) / 2;
}

static uint64_t blocks_on(uint64_t n, bool ring)
{
    const uint64_t h = n / 2;

    if (!ring)
        return n * n / 4;
    if (n <= 9)
        return steps_on(n, ring);
    return n % 2 == 0 ? n * n / 8 + h : (h * h + 1) / 2 + 2 * h;
}

/* What the messages of one step do: by node, the message that starts there and the node where it started that ends
 * there; by channel, the message that crosses it. A message is its start + 1; 0 is none. */
struct line_step {
    uint32_t *starts, *ends, *crosses[2];
    uint64_t *blocks; /* of the message that starts at a node */
    uint32_t *hops;
};

static void claim(uint32_t *place, uint32_t message)
{
    assert_true(*place == 0 || *place == message);
    *place = message;
}

/* Adds a block's leg from a node of the line. Returns the node where it ends. */
static uint32_t follow_leg(const struct torus *t, struct line_step *s, uint32_t from,
                           const struct leg *leg)
{
    const uint32_t n = t->size[0], message = 2 * from + (leg->direction > 0) + 1;
    uint32_t at = from;

    assert_int_equal(leg->dim, 0);
    assert_true(leg->hops >= 1 && leg->hops < n);
    claim(&s->starts[from], message);
    assert_true(s->blocks[from] == 0 || s->hops[from] == leg->hops);
    s->hops[from] = leg->hops;
    s->blocks[from]++;
    for (uint32_t hop = 0; hop < leg->hops; hop++) {
        claim(&s->crosses[leg->direction > 0][at], message);
        assert_true(t->wrap[0] || (leg->direction > 0 ? at + 1 < n : at > 0));
        at = (leg->direction > 0 ? at + 1 : at + n - 1) % n;
    }
    claim(&s->ends[at], message);
    return at;
}

/* Follows all blocks on one line: each reaches its end, in rising steps, and in a step no node sends two messages or
 * receives two, and no channel carries two. */
static void check_line(uint32_t n, bool ring)
{
    struct torus t = {.dims = 1, .size = {n}, .wrap = {ring}, .nodes = n};
    const struct algorithm *a = algorithm_find("dim-1port");
    const uint64_t steps = steps_on(n, ring);
    uint32_t *places = calloc(steps * n * 5, sizeof *places);
    uint64_t *blocks = calloc(steps * n, sizeof *blocks), cost = 0;
    struct leg legs[MOST_LEGS];

    assert_non_null(places);
    assert_non_null(blocks);
    assert_true(algorithm_max_legs(a, &t) <= MOST_LEGS);
    for (uint32_t source = 0; source < n; source++) {
        for (uint32_t destination = 0; destination < n; destination++) {
            if (source == destination)
                continue;
            const uint32_t count = algorithm_route(a, &t, source, destination, 0, legs);
            uint32_t at = source;
            for (uint32_t i = 0; i < count; i++) {
                assert_true(legs[i].step < steps && (i == 0 || legs[i].step > legs[i - 1].step));
                uint32_t *first = places + (size_t)legs[i].step * n * 5;
                struct line_step s = {.starts = first,
                                      .ends = first + n,
                                      .crosses = {first + (size_t)2 * n, first + (size_t)3 * n},
                                      .hops = first + (size_t)4 * n,
                                      .blocks = blocks + (size_t)legs[i].step * n};
                at = follow_leg(&t, &s, at, &legs[i]);
            }
            assert_int_equal(at, destination);
        }
    }
    for (uint64_t step = 0; step < steps; step++) {
        uint64_t most = 0;
        for (uint32_t node = 0; node < n; node++)
            most = larger(most, blocks[step * n + node]);
        assert_true(most > 0); /* no step is empty */
        cost += most;
    }
    free(places);
    free(blocks);
    assert_int_equal(cost, blocks_on(n, ring));
}

TEST(one_port_lines)
{
    for (uint32_t n = 2; n <= 80; n++) {
        check_line(n, true);
        check_line(n, false);
    }
}

/* The sum over the dimensions. With at most seven nodes in each ring, and three in each line, no schedule of straight legs
 * costs less: a node sends a block once for each dimension in which its ends differ. */
static void check_product(const struct torus *t)
{
    struct schedule_report r = contract_verify(t, "dim-1port");
    uint64_t steps = 0, blocks = 0, sends = 0;
    bool small = true;

    for (unsigned i = 0; i < t->dims; i++) {
        if (t->size[i] == 1)
            continue;
        steps += steps_on(t->size[i], t->wrap[i]);
        blocks += blocks_on(t->size[i], t->wrap[i]) * (t->nodes / t->size[i]);
        sends += (t->size[i] - 1) * (t->nodes / t->size[i]);
        small = small && t->size[i] <= (t->wrap[i] ? 7 : 3);
    }
    assert_int_equal(r.startups, steps);
    assert_true(r.transmission == (double)blocks);
    assert_true(blocks >= sends && (!small || blocks == sends));
    assert_true(schedule_keeps_ports(algorithm_find("dim-1port"), &r));
}

TEST(one_port_products)
{
    static const char *const others[] = {"1",       "3x3x3",   "2x2x2",      "3x4x5", "11x3x2",
                                         "3mx4x5m", "2x3x2x3", "1x11x1x10m", "13mx9", "2mx2mx2m"};
    const struct algorithm *a = algorithm_find("dim-1port");

    for (uint32_t rows = 1; rows <= 16; rows++) {
        for (uint32_t columns = 1; columns <= 16; columns++) {
            struct torus t = contract_rectangle(rows, columns);
            for (unsigned lines = 0; lines < 4; lines++) {
                t.wrap[0] = (lines & 1) == 0;
                t.wrap[1] = (lines & 2) == 0;
                check_product(&t);
                if (rows <= 3 && columns <= 11)
                    contract_check(&t, a);
            }
        }
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct torus t = contract_torus(others[i]);
        check_product(&t);
        contract_check(&t, a);
        contract_check_no_gaps(&t, "dim-1port");
    }
    contract_refused("dim-1port", "3 x complete:3");
    contract_refused("dim-1port", "65536");
}

/* All dimensions at once: on equal sizes n, d phases on rows of n/d nodes, and the submeshes' own exchange. */
static void check_lanes(const struct torus *t, bool equal)
{
    const struct algorithm *a = algorithm_find("lanes-1port");
    const uint64_t n = t->size[0], d = t->dims, row = n / d;
    struct schedule_report r = contract_verify(t, "lanes-1port");

    assert_true(schedule_keeps_ports(a, &r));
    if (equal) {
        const uint64_t steps = row > 1 ? steps_on(row, t->wrap[0]) : 0;
        const uint64_t blocks = row > 1 ? blocks_on(row, t->wrap[0]) : 0;
        assert_int_equal(r.startups, d * steps + d * (d - 1));
        assert_true(r.transmission ==
                    (double)(d * d * (t->nodes / n) * blocks + d * d / 4 * t->nodes));
    }
    if (t->nodes <= 100)
        contract_check(t, a);
    contract_check_no_gaps(t, "lanes-1port");
}

TEST(one_port_lanes)
{
    static const char *const unequal[] = {"4x8",   "10x6",    "8mx6", "3x6x9",
                                          "4x1x6", "4x4x8x4", "22x4"};

    for (uint32_t d = 2; d <= 4; d++) {
        for (uint32_t row = 1; row <= 16; row += (uint32_t)one_in(3)) {
            for (unsigned wraps = 0; wraps < 2; wraps++) {
                struct torus t = {.dims = 0, .nodes = 1};
                for (uint32_t i = 0; i < d && t.nodes <= 1024; i++)
                    assert_int_equal(torus_append(&t, d * row, wraps != 0, NULL), 0);
                if (t.dims == d && t.nodes <= 1024)
                    check_lanes(&t, true);
            }
        }
    }
    for (size_t i = 0; i < sizeof unequal / sizeof unequal[0]; i++) {
        struct torus t = contract_torus(unequal[i]);
        check_lanes(&t, false);
    }
    contract_refused("lanes-1port", "8");
    contract_refused("lanes-1port", "5x4");
    contract_refused("lanes-1port", "6x6x4");
}

/* ---- k ports --------------------------------------------------------------------------------- */

static uint64_t hops_to(uint64_t offset, uint64_t n)
{
    return offset < n - offset ? offset : n - offset;
}

/* The cost of all turns by the statement alone, in halves of parts: in each step of a turn, what a node's parts send in each
 * direction. On a torus all nodes do the same. */
static uint64_t statement_cost(const struct torus *t, unsigned k, uint64_t *steps)
{
    const unsigned ways = 2 * t->dims;
    uint64_t cost = 0;

    *steps = 0;
    for (unsigned turn = 0; turn < ways; turn++) {
        for (uint64_t step = 0;; step++) {
            uint64_t most = 0;
            for (unsigned part = 0; part < k; part++) {
                const unsigned dim = (part + turn) % ways / 2;
                const uint64_t n = t->size[dim], others = t->nodes / n;
                uint64_t sent = 0;
                for (uint64_t offset = 1; offset < n; offset++) /* both ways alike: half of all */
                    sent += hops_to(offset, n) > step;
                most = larger(most, sent * others);
            }
            if (most == 0)
                break;
            cost += most;
            ++*steps;
        }
    }
    return cost;
}

/* Counts the messages that a node sends in each step, by following all parts of its blocks: all nodes do the same. */
static void check_ports(const struct torus *t, const struct algorithm *a, uint64_t steps)
{
    const unsigned ports = torus_ports(t);
    bool *sends = calloc(steps * ports, sizeof *sends);
    struct leg legs[MOST_LEGS];

    assert_non_null(sends);
    for (uint32_t to = 1; to < t->nodes; to++) {
        for (uint32_t part = 0; part < a->segments; part++) {
            const uint32_t count = algorithm_route(a, t, 0, to, part, legs);
            for (uint32_t i = 0; i < count; i++) {
                assert_true(legs[i].step < steps);
                sends[legs[i].step * ports + torus_port(t, legs[i].dim, legs[i].direction)] = true;
            }
        }
    }
    for (uint64_t step = 0; step < steps; step++) {
        unsigned used = 0;
        for (unsigned port = 0; port < ports; port++)
            used += sends[step * ports + port];
        assert_true(used >= 1 && used <= a->ports);
    }
    free(sends);
}

static void check_k_ports(const struct torus *t, unsigned k, bool equal)
{
    char name[16];
    uint64_t steps;

    (void)snprintf(name, sizeof name, "dim-k%u", k);
    const struct algorithm *a = algorithm_find(name);
    const uint64_t cost = statement_cost(t, k, &steps);
    struct schedule_report r = contract_verify(t, name);

    assert_int_equal(r.startups, steps);
    assert_true(r.transmission == (double)cost);
    assert_int_equal(r.contended_steps, 0);
    assert_true(r.minimal && schedule_keeps_ports(a, &r));
    check_ports(t, a, steps);
    const double blocks = r.transmission / a->segments;
    assert_true(blocks > r.bound - 1e-9);
    if (equal) {
        const uint64_t n = t->size[0];
        assert_true(blocks < r.bound + 1e-9);
        assert_int_equal(steps, 2 * t->dims * (n / 2));
        assert_int_equal(cost, 2 * t->dims * (t->nodes / n) * (n * n / 4));
    }
    if (t->nodes <= 36)
        contract_check(t, a);
}

TEST(k_ports_take_the_bound)
{
    for (uint32_t n = 2; n <= 8; n++) {
        struct torus t = {.dims = 0, .nodes = 1};
        for (unsigned dims = 1; dims <= 4 && t.nodes * n <= 625; dims++) {
            assert_int_equal(torus_append(&t, n, true, NULL), 0);
            for (unsigned k = 2; k <= 2 * dims; k++)
                check_k_ports(&t, k, true);
        }
    }
}

TEST(k_ports_on_unequal_sizes)
{
    static const char *const tori[] = {"3x4", "4x8", "5x7", "2x3x4", "3x4x5"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i]);
        for (unsigned k = 2; k <= 2 * t.dims; k++)
            check_k_ports(&t, k, false);
    }
}

TEST(k_ports_names)
{
    struct torus t = contract_torus("3x3");

    assert_null(algorithm_find("dim-k1"));
    assert_null(algorithm_find("dim-k9"));
    assert_null(algorithm_find("dim-k2x"));
    assert_string_equal(algorithm_ports_name(algorithm_find("dim-k3")), "3-port");
    assert_string_equal(algorithm_bound_name(algorithm_find("dim-k3")), "3-port, single hops");
    assert_true(algorithm_bound(algorithm_find("dim-k3"), &t) == 4);
    contract_refused("dim-k5", "3x3");
    contract_refused("dim-k3", "5x1");
    contract_refused("dim-k2", "3x3m");
}
