/* a3 on hypercubes, generalized hypercubes and products of other equal graphs: the message sets of the
 * paper's section 5, also where a half has several dimensions, and the time of corollary 3. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/graph/graph_exchange.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct torus petersen_squared(void)
{
    uint32_t edge[30], count = 0;
    struct torus t = {.nodes = 1};
    struct error e;

    for (uint32_t i = 0; i < 5; i++) {
        const uint32_t some[] = {i, (i + 1) % 5, i, i + 5, 5 + i, 5 + (i + 2) % 5};
        memcpy(&edge[count], some, sizeof some);
        count += 6;
    }
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(torus_append(&t, 0, false, graph_of_edges(edge, 15, &e)), 0);
    return t;
}

/* ---- The paper's message sets ---------------------------------------------------------------- */

enum { LEGS = 16 };

/* All blocks, with their routes and the nodes at which their legs begin. */
struct blocks {
    struct torus t;
    uint32_t steps; /* of the exchange in one dimension */
    struct leg *leg;
    uint32_t *at;    /* LEGS + 1 by block: the nodes on the way, the destination last */
    uint32_t *count; /* legs by block */
};

static void follow_all(struct blocks *b, const struct torus *t)
{
    const struct algorithm *a3 = algorithm_find("a3");
    size_t all = (size_t)t->nodes * t->nodes;

    *b = (struct blocks){.t = *t, .steps = a3_startups(t) / (t->nodes / t->size[0])};
    b->leg = calloc(all * LEGS, sizeof *b->leg);
    b->at = calloc(all * (LEGS + 1), sizeof *b->at);
    b->count = calloc(all, sizeof *b->count);
    assert_true(b->leg && b->at && b->count);
    assert_in_range(algorithm_max_legs(a3, t), 1, LEGS);
    for (size_t i = 0; i < all; i++) {
        uint32_t source = (uint32_t)(i / t->nodes), destination = (uint32_t)(i % t->nodes);
        uint32_t *at = &b->at[i * (LEGS + 1)];
        if (source != destination)
            b->count[i] = algorithm_route(a3, t, source, destination, 0, &b->leg[i * LEGS]);
        at[0] = source;
        for (uint32_t k = 0; k < b->count[i]; k++) {
            const struct leg *leg = &b->leg[i * LEGS + k];
            assert_int_equal(leg->hops, 1);
            at[k + 1] = torus_walk(t, at[k], leg->dim, leg->direction, 1);
        }
        assert_int_equal(at[b->count[i]], destination);
    }
}

static void free_all(struct blocks *b)
{
    free(b->leg);
    free(b->at);
    free(b->count);
}

/* Some of the dimensions. */
struct span {
    unsigned first, dims;
};

static uint32_t span_nodes(const struct blocks *b, struct span s)
{
    uint32_t n = 1;
    for (unsigned i = 0; i < s.dims; i++)
        n *= b->t.size[0];
    return n;
}

/* The number of a node within its copy of the span, and the copy. */
static uint32_t within(const struct blocks *b, struct span s, uint32_t node)
{
    uint32_t at[TORUS_MAX_DIMS], number = 0;

    torus_coordinates(&b->t, node, at);
    for (unsigned i = s.first; i < s.first + s.dims; i++)
        number = number * b->t.size[0] + at[i];
    return number;
}

/* Corollary 3: an exchange within the span takes n^(dims-1) exchanges in one dimension. */
static uint32_t span_steps(const struct blocks *b, struct span s)
{
    return span_nodes(b, s) / b->t.size[0] * b->steps;
}

/* The legs of a block in the span, in an exchange that begins at a step: the first, and behind the last. */
static bool moves_in(const struct blocks *b, size_t block, struct span s, uint32_t begin,
                     uint32_t *first, uint32_t *end)
{
    const struct leg *leg = &b->leg[block * LEGS];
    bool moves = false;

    for (uint32_t k = 0; k < b->count[block]; k++) {
        if (leg[k].dim < s.first || leg[k].dim >= s.first + s.dims || leg[k].step < begin ||
            leg[k].step >= begin + span_steps(b, s))
            continue;
        if (!moves)
            *first = k;
        *end = k + 1;
        moves = true;
    }
    return moves;
}

/* Checks that a block of round q of A came by round q-1 of B; in round 0, that it does not move in B. */
static void check_source(const struct blocks *b, size_t block, struct span s, uint32_t q,
                         uint32_t begin)
{
    struct span other = {s.first + s.dims / 2, s.dims / 2};
    const uint32_t *at = &b->at[block * (LEGS + 1)];
    uint32_t first = 0, end = 0;

    if (q > 0) {
        begin += (q - 1) * span_steps(b, other);
        assert_true(moves_in(b, block, other, begin, &first, &end));
        return;
    }
    assert_true(moves_in(b, block, s, begin, &first, &end));
    assert_int_equal(within(b, other, at[first]), within(b, other, at[end]));
}

/* Checks that the blocks of an exchange are a perfect set, as the paper says: every node sends exactly
 * one to every other node of its copy of the span. Then the same for its rounds, and that round q of A
 * takes the blocks that round q-1 of B has brought. */
static void check_span(const struct blocks *b, struct span s, uint32_t begin)
{
    uint32_t n = span_nodes(b, s), first = 0, end = 0;
    size_t all = (size_t)b->t.nodes * b->t.nodes;
    bool *sent = calloc((size_t)b->t.nodes * n, sizeof *sent);
    uint32_t moved = 0;

    assert_non_null(sent);
    for (size_t block = 0; block < all; block++) {
        if (!moves_in(b, block, s, begin, &first, &end))
            continue;
        const uint32_t *at = &b->at[block * (LEGS + 1)];
        bool *of = &sent[(size_t)at[first] * n + within(b, s, at[end])];
        assert_false(*of);
        assert_int_not_equal(within(b, s, at[first]), within(b, s, at[end]));
        *of = true;
        moved++;
    }
    assert_int_equal(moved, b->t.nodes * (n - 1));
    free(sent);
    if (s.dims == 1)
        return;

    struct span a = {s.first, s.dims / 2}, other = {s.first + s.dims / 2, s.dims / 2};
    uint32_t rounds = span_nodes(b, a), steps = span_steps(b, a);
    assert_int_equal(rounds * steps, span_steps(b, s));
    for (uint32_t q = 0; q < rounds; q++) {
        check_span(b, a, begin + q * steps);
        check_span(b, other, begin + q * steps);
        for (size_t block = 0; block < all; block++)
            if (moves_in(b, block, a, begin + q * steps, &first, &end))
                check_source(b, block, s, q, begin);
    }
}

static void check_sets(const struct torus *t)
{
    struct blocks b;

    follow_all(&b, t);
    check_span(&b, (struct span){0, t->dims}, 0);
    free_all(&b);
}

TEST(message_sets_of_the_paper)
{
    static const char *const networks[] = {
        "2m",
        "2m^2",
        "2m^4",
        "2m^8",

        "complete:3^4",
        "complete:7^2",
        "2m x complete:2",
        "complete:2^2 x 2m^2",
        "star:4 x star:4",
        "complete:4^4",
        "3x3x3x3",
        "5mx5m",
    };

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        struct torus t = contract_torus(networks[i]);
        check_sets(&t);
    }
    struct torus t = petersen_squared();
    check_sets(&t);
}

/* ---- The time of the paper ------------------------------------------------------------------- */

/* Corollary 3: N/n times the exchange of one dimension. Theorem 5: optimal if that one is. */
static void check_time(const struct torus *t, uint32_t steps, bool optimal)
{
    struct schedule_report r;
    struct error e;

    contract_check(t, algorithm_find("a3"));
    if (schedule_verify(t, algorithm_find("a3"), &r, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(r.startups, t->nodes / t->size[0] * steps);
    assert_int_equal(r.transmission, r.startups);
    assert_int_equal(r.startups, a3_startups(t));
    assert_int_equal(r.transmission, a3_transmission(t));
    assert_int_equal(r.contended_steps, 0);
    assert_true(r.minimal);
    if (optimal)
        assert_true((double)r.transmission == r.bound);
}

TEST(complete_graphs)
{
    char text[32];

    for (uint32_t n = 2; n <= 17; n++) {
        (void)snprintf(text, sizeof text, "complete:%u", n);
        struct torus t = contract_torus(text);
        check_time(&t, 1, true);
        if (n > 12)
            continue;
        (void)snprintf(text, sizeof text, "complete:%u^2", n);
        t = contract_torus(text);
        check_time(&t, 1, true);
    }
    struct torus t = contract_torus("complete:3^4");
    check_time(&t, 1, true);
    t = contract_torus("complete:4^4");
    check_time(&t, 1, true);
}

/* A hypercube of 2^d nodes takes N/2 steps of one block: the bound of its cut into halves. */
TEST(hypercubes)
{
    static const char *const cubes[] = {"2m",
                                        "2m^2",
                                        "2m^4",
                                        "2m^8",
                                        "complete:2^4",
                                        "complete:2^8",
                                        "2m x complete:2",
                                        "complete:2 x 2m^3"};
    for (size_t i = 0; i < sizeof cubes / sizeof cubes[0]; i++) {
        struct torus t = contract_torus(cubes[i]);
        check_time(&t, 1, true);
    }
}

TEST(other_graphs)
{
    struct torus t = contract_torus("star:4 x star:4");

    check_time(&t, graph_exchange(t.graph[0], GRAPH_ALL_PORTS)->steps, false);
    t = contract_torus("tree:2^2 x tree:2^2"); /* 12 steps, which its cut needs */
    check_time(&t, 12, true);
    t = petersen_squared();
    check_time(&t, 5, true);
}
