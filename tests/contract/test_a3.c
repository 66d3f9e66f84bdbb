/* a3: corollary 3's time on every torus and mesh that it takes, and its optimality. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/graph/graph_exchange.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

static struct torus cube(unsigned dims, uint32_t size, bool wrap)
{
    struct torus t = {.dims = dims, .nodes = 1};
    for (unsigned i = 0; i < dims; i++) {
        t.size[i] = size;
        t.wrap[i] = wrap;
        t.nodes *= size;
    }
    return t;
}

TEST(delivered)
{
    static const struct {
        unsigned dims;
        uint32_t largest;
    } sizes[] = {{1, 16}, {2, LARGEST}, {4, 3}, {8, 2}};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (uint32_t n = 1; n <= sizes[i].largest; n++) {
            for (int wrap = 0; wrap < 2; wrap++) {
                struct torus t = cube(sizes[i].dims, n, wrap);
                contract_check(&t, algorithm_find("a3"));
            }
        }
    }
    struct torus t = contract_torus("4x4x4x4");
    contract_check(&t, algorithm_find("a3"));
}

/* Theorem 4, corollary 3: the time of N/n exchanges of one dimension, without contention, and every
 * route a shortest path. */
static void check_figures(const struct torus *t)
{
    struct schedule_report r = contract_verify(t, "a3");
    assert_int_equal(r.startups, a3_startups(t));
    assert_int_equal(r.transmission, a3_transmission(t));
    assert_true(t->size[0] == 1 || r.critical_path <= r.transmission);
    assert_int_equal(r.contended_steps, 0);
    assert_true(r.minimal);
    /* Theorem 5: optimal if the exchange in one dimension is. */
    if (!t->wrap[0] || t->size[0] % 2 != 0 || t->size[0] % 4 == 0)
        assert_true((double)r.transmission == r.bound);
    else
        assert_true((double)r.transmission == r.bound + 0.5 * (t->nodes / t->size[0]));
}

TEST(figures)
{
    for (unsigned dims = 1; dims <= 8; dims *= 2) {
        for (uint32_t n = 2; n <= 16; n++) {
            for (int wrap = 0; wrap < 2; wrap++) {
                if (dims == 8 && n > 2)
                    continue; /* node numbers have 32 bits */
                struct torus t = cube(dims, n, wrap);
                if (dims <= 2 || t.nodes <= 256 || (wrap && dims == 4 && n <= 8)) {
                    check_figures(&t);
                    if (t.nodes <= 256)
                        contract_check_no_gaps(&t, "a3");
                }
            }
        }
    }
}

TEST(named_figures)
{
    static const struct {
        const char *torus;
        uint32_t startups;
        uint64_t transmission;
    } figures_of[] = {{"2x2", 2, 2},          {"4x4", 8, 8},     {"8x8", 32, 64},
                      {"16x16", 128, 512},    {"6x6", 18, 30},   {"5x5", 10, 15},
                      {"7x7", 21, 42},        {"3x3", 3, 3},     {"4x4x4x4", 128, 128},
                      {"8mx8m", 56, 128},     {"5mx5m", 20, 30}, {"3mx3mx3mx3m", 54, 54},
                      {"8x8x8x8", 2048, 4096}};

    for (size_t i = 0; i < sizeof figures_of / sizeof figures_of[0]; i++) {
        struct torus t = contract_torus(figures_of[i].torus);
        struct schedule_report r = contract_verify(&t, "a3");
        assert_int_equal(r.startups, figures_of[i].startups);
        assert_int_equal(r.transmission, figures_of[i].transmission);
    }
}

/* ---- The paper's rule, written out independently --------------------------------------------- */

/* The operator (+) of section 5: addition modulo n, with results from 1 to n. */
static uint32_t plus(uint32_t a, uint32_t b, uint32_t n)
{
    return (a + b - 1) % n + 1;
}

/* The rounds, counted from 1, in which a block moves within its copy of B and within one of A. */
struct rounds {
    uint32_t b, a; /* 0: never */
};

/* Fig. 6 and (7), of an n x n network, nodes (i, j) from 1 to n. */
static void literal_rounds(uint32_t n, struct rounds *of)
{
#define ROUNDS(i, j, k, l) of[((((i)-1) * n + (j)-1) * n + (k)-1) * n + (l)-1]
    for (uint32_t i = 1; i <= n; i++) {
        for (uint32_t j = 1; j <= n; j++) {
            for (uint32_t v = 1; v <= n; v++)
                if (v != i) /* first round in A_j: messages for the other nodes of A_j */
                    ROUNDS(i, j, v, j) = (struct rounds){.a = 1};
            for (uint32_t r = 1; r < n; r++) {
                /* r-th round in B_i: (i, j) sends to (i, j+1), (i, j+2), ... the messages for
                 * v_(i+1), v_(i+2), ..., rotated to the left r - 1 times. They are passed on in A
                 * in round r + 1. */
                for (uint32_t l = 1; l < n; l++) {
                    uint32_t rotated = (l - 1 + r - 1) % (n - 1) + 1;
                    ROUNDS(i, j, plus(i, rotated, n), plus(j, l, n)) =
                        (struct rounds){.b = r, .a = r + 1};
                }
            }
            for (uint32_t u = 1; u <= n; u++)
                if (u != j) /* last round in B_i: the remaining messages */
                    ROUNDS(i, j, i, u) = (struct rounds){.b = n};
        }
    }
#undef ROUNDS
}

/* Checks that every block moves in the rounds that the paper gives it, and in no others. */
static void check_rounds(const struct torus *t)
{
    const struct algorithm *a3 = algorithm_find("a3");
    uint32_t n = t->size[0], steps = a3_startups(t) / n;
    struct rounds *of = calloc((size_t)t->nodes * t->nodes, sizeof *of);

    assert_non_null(of);
    literal_rounds(n, of);
    for (uint32_t s = 0; s < t->nodes; s++) {
        for (uint32_t d = 0; d < t->nodes; d++) {
            struct leg legs[64];
            uint32_t count = s == d ? 0 : algorithm_route(a3, t, s, d, 0, legs);
            const struct rounds *r = &of[s * t->nodes + d];
            bool moved[2] = {false, false};
            for (uint32_t i = 0; i < count; i++) {
                assert_int_equal(legs[i].step / steps + 1, legs[i].dim == 0 ? r->a : r->b);
                moved[legs[i].dim] = true;
            }
            assert_int_equal(moved[0], r->a != 0);
            assert_int_equal(moved[1], r->b != 0);
        }
    }
    free(of);
}

TEST(rounds_of_the_paper)
{
    for (uint32_t n = 2; n <= 9; n++) {
        for (int wrap = 0; wrap < 2; wrap++) {
            struct torus t = cube(2, n, wrap);
            check_rounds(&t);
        }
        char text[16];
        (void)snprintf(text, sizeof text, "complete:%u^2", n);
        struct torus t = contract_torus(text);
        check_rounds(&t);
    }
}

/* Section 1: only neighbours exchange messages, and a message takes one time unit on a link. So
 * every leg must be one hop, and a step takes as many units as the most blocks on any channel. The
 * sum must be theorem 5's bound, on rings with n^2/8 rounded up. */
static void check_units(const struct torus *t)
{
    const struct algorithm *a3 = algorithm_find("a3");
    uint32_t steps = a3_startups(t), ports = torus_ports(t);
    uint32_t *load = calloc((size_t)steps * t->nodes * ports, sizeof *load);
    uint64_t units = 0;

    assert_non_null(load);
    for (uint32_t s = 0; s < t->nodes; s++) {
        for (uint32_t d = 0; d < t->nodes; d++) {
            struct leg legs[64];
            uint32_t count = s == d ? 0 : algorithm_route(a3, t, s, d, 0, legs), here = s;
            for (uint32_t i = 0; i < count; i++) {
                unsigned port = torus_port(t, legs[i].dim, legs[i].direction);
                assert_int_equal(legs[i].hops, 1);
                assert_true(i == 0 || legs[i].step > legs[i - 1].step);
                load[((size_t)legs[i].step * t->nodes + here) * ports + port]++;
                here = torus_neighbour(t, here, port);
            }
            assert_int_equal(here, d);
        }
    }
    for (uint32_t step = 0; step < steps; step++) {
        uint32_t most = 0; /* units of this step */
        for (uint32_t i = 0; i < t->nodes * ports; i++) {
            uint32_t on_channel = load[(size_t)step * t->nodes * ports + i];
            most = on_channel > most ? on_channel : most;
        }
        assert_true(most > 0);
        units += most;
    }
    uint64_t n = t->size[0], cut = (n / 2) * ((n + 1) / 2);
    assert_int_equal(units, t->nodes / n * (t->wrap[0] ? (cut + 1) / 2 : cut));
    free(load);
}

TEST(units_of_the_paper)
{
    for (int wrap = 0; wrap < 2; wrap++) {
        for (uint32_t n = 2; n <= 50; n++) {
            struct torus line = cube(1, n, wrap), square = cube(2, n, wrap);
            check_units(&line);
            if (n <= 13)
                check_units(&square);
        }
        struct torus four = cube(4, 3, wrap);
        check_units(&four);
    }
}

/* Too many hops for a search, in a half as well; or for the exchange within a factor. */
TEST(refusals)
{
    static const char *const refused[] = {"15x16", "16x32", "9m x tree:2^5", "15x16x15x16",
                                          "tree:2^8"};

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        contract_refused("a3", refused[i]);
}

/* a3 on hypercubes, generalized hypercubes and products of other equal graphs: the message sets of the
 * paper's section 5, also where a half has several dimensions, and the time of corollary 3. */

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

/* The offset in dimensions `first` and `first` + 1: by coordinate or, as in the paper, by the numbers of the nodes. */
static uint32_t offset_in_half(const struct blocks *b, unsigned first, uint32_t s, uint32_t d,
                               bool by_number)
{
    uint32_t n = b->t.size[0], from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    struct span half = {first, 2};

    if (by_number)
        return (within(b, half, d) + n * n - within(b, half, s)) % (n * n);
    torus_coordinates(&b->t, s, from);
    torus_coordinates(&b->t, d, to);
    return (to[first] + n - from[first]) % n * n + (to[first + 1] + n - from[first + 1]) % n;
}

/* Section 5 on two halves of two dimensions. a3 takes offsets by coordinate, which gives many blocks other rounds than
 * offsets by number. */
TEST(rounds_on_four_dimensions)
{
    struct torus t = contract_torus("3x3x3x3");
    struct blocks b;
    uint32_t others = 0, steps, rounds = 9;

    follow_all(&b, &t);
    steps = a3_startups(&t) / rounds;
    for (uint32_t s = 0; s < t.nodes; s++) {
        for (uint32_t d = 0; d < t.nodes; d++) {
            uint32_t round[2];
            for (int by_number = 0; by_number < 2; by_number++) {
                uint32_t in_a = offset_in_half(&b, 0, s, d, by_number != 0);
                uint32_t in_b = offset_in_half(&b, 2, s, d, by_number != 0);
                round[by_number] = in_b == 0   ? 0
                                   : in_a == 0 ? rounds - 1
                                               : (in_a + rounds - 1 - in_b) % (rounds - 1);
            }
            others += round[0] != round[1];
            for (uint32_t i = 0; i < b.count[(size_t)s * t.nodes + d]; i++) {
                const struct leg *leg = &b.leg[((size_t)s * t.nodes + d) * LEGS + i];
                bool follows = leg->dim < 2 && offset_in_half(&b, 2, s, d, false) != 0;
                assert_int_equal(leg->step / steps, round[0] + follows);
            }
        }
    }
    assert_true(others > 0);
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
    assert_success(schedule_verify(t, algorithm_find("a3"), &r, &e), e);
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

/* ---- Products that the paper leaves open ------------------------------------------------------ */

/* Every channel carries at most one block in a step, so that steps are the blocks. */
TEST(whole_products)
{
    static const struct {
        const char *network;
        uint32_t steps;
    } found[] = {
        {"2m^3", 4},
        {"2m^5", 16},
        {"2m x complete:2 x 2m", 4},
        {"3x5", 9},
        {"3x7", 18},
        {"4x5", 12},
        {"4x8", 32},
        {"1x8x4", 32},
        {"3x3x3", 9},
        {"3x4x5", 36},
        {"4x4x4", 32},
        {"5x7", 30},
        {"3mx4m", 12},
        {"2x4", 4},
        {"complete:3 x complete:4", 4},
        {"complete:3 x 3", 3},
        {"star:4", 3},
    };

    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
        struct torus t = contract_torus(found[i].network);
        struct schedule_report r = contract_verify(&t, "a3");
        contract_check(&t, algorithm_find("a3"));
        contract_check_no_gaps(&t, "a3");
        assert_int_equal(r.startups, found[i].steps);
        assert_int_equal(r.transmission, found[i].steps);
        assert_true(r.bound == found[i].steps);
        assert_int_equal(r.startups, a3_startups(&t));
        assert_int_equal(r.transmission, a3_transmission(&t));
        assert_int_equal(r.contended_steps, 0);
        assert_true(r.minimal);
    }
}

/* A network of two equal halves. */
struct halves {
    const char *network;
    bool is_a[TORUS_MAX_DIMS]; /* whether a dimension is in half A */
    uint32_t nodes, steps;     /* of a half, and of a round */
};

/* Where a node is within its copy of half A or B. */
static uint32_t in_half(const struct halves *h, const struct torus *t, bool a, uint32_t node)
{
    uint32_t at[TORUS_MAX_DIMS], number = 0;

    torus_coordinates(t, node, at);
    for (unsigned i = 0; i < t->dims; i++)
        if (h->is_a[i] == a)
            number = number * t->size[i] + at[i];
    return number;
}

/* Follows the legs of a block in one half, from leg *i on. Returns the round that all of them are in, and marks the
 * block as sent by `*here` in this round; the number of rounds if the block does not move there. */
static uint32_t follow_in(const struct halves *h, const struct torus *t, bool a,
                          const struct leg *legs, uint32_t count, uint32_t *i, uint32_t *here,
                          bool *sent)
{
    uint32_t round = h->nodes, first = *here;

    for (; *i < count && h->is_a[legs[*i].dim] == a; (*i)++) {
        assert_true(round == h->nodes || round == legs[*i].step / h->steps);
        round = legs[*i].step / h->steps;
        *here = torus_walk(t, *here, legs[*i].dim, legs[*i].direction, 1);
    }
    if (round < h->nodes) {
        bool *mark = &sent[((size_t)round * t->nodes + first) * h->nodes + in_half(h, t, a, *here)];
        assert_false(*mark);
        *mark = true;
    }
    return round;
}

/* Section 5 with a product in place of a dimension: in each of the rounds, each node sends one block to each other node
 * of its copy of A, and of B. What B brings, A takes in the next round. */
static void check_halves(const struct halves *h)
{
    struct torus t = contract_torus(h->network);
    bool *sent[2];
    uint64_t moved[2] = {0, 0};
    struct leg legs[LEGS];

    for (int a = 0; a < 2; a++)
        sent[a] = calloc((size_t)h->nodes * t.nodes * h->nodes, sizeof **sent);
    assert_true(sent[0] != NULL && sent[1] != NULL);
    for (uint32_t s = 0; s < t.nodes; s++) {
        for (uint32_t d = 0; d < t.nodes; d++) {
            uint32_t here = s, i = 0;
            uint32_t count = s == d ? 0 : algorithm_route(algorithm_find("a3"), &t, s, d, 0, legs);
            uint32_t in_b = follow_in(h, &t, false, legs, count, &i, &here, sent[0]);
            uint32_t in_a = follow_in(h, &t, true, legs, count, &i, &here, sent[1]);
            assert_int_equal(i, count);
            assert_int_equal(here, d);
            moved[0] += in_b < h->nodes;
            moved[1] += in_a < h->nodes;
            if (in_a < h->nodes)
                assert_int_equal(in_a, in_b < h->nodes ? in_b + 1 : 0);
        }
    }
    for (int a = 0; a < 2; a++) {
        assert_int_equal(moved[a], (uint64_t)h->nodes * t.nodes * (h->nodes - 1));
        free(sent[a]);
    }
    struct schedule_report r = contract_verify(&t, "a3");
    assert_int_equal(r.startups, h->nodes * h->steps);
    assert_int_equal(r.transmission, r.startups);
    assert_true((double)r.transmission == r.bound);
}

TEST(halves_of_several_dimensions)
{
    static const struct halves networks[] = {
        {"3x5x3x5", {true, true, false, false}, 15, 9},
        {"3x3x5x5", {true, false, true, false}, 15, 9},
        {"2m^6", {true, true, true, false, false, false}, 8, 4},
        {"complete:3 x 3 x complete:3 x 3", {true, true, false, false}, 9, 3},
    };

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        check_halves(&networks[i]);
}

/* ---- Two long rounds -------------------------------------------------------------------------- */

/* Counts the blocks that each node sends to each other node of its copy of a half, by round, half, node and other node,
 * and checks that a block moves in one half only in each round. */
static void count_rounds(const struct halves *h, const struct torus *t, uint32_t steps,
                         uint32_t *count)
{
    const struct algorithm *a = algorithm_find("halves");
    struct leg legs[LEGS];

    for (uint32_t s = 0; s < t->nodes; s++)
        for (uint32_t d = 0; d < t->nodes; d++) {
            uint32_t legs_of = s == d ? 0 : algorithm_route(a, t, s, d, 0, legs), here = s;
            for (uint32_t i = 0; i < legs_of;) {
                uint32_t round = legs[i].step / steps, first = here;
                bool in_a = h->is_a[legs[i].dim];
                for (; i < legs_of && legs[i].step / steps == round; i++) {
                    assert_int_equal(h->is_a[legs[i].dim], in_a);
                    here = torus_walk(t, here, legs[i].dim, legs[i].direction, 1);
                }
                assert_in_range(round, 0, 1);
                count[((round * 2 + in_a) * t->nodes + first) * h->nodes +
                      in_half(h, t, in_a, here)]++;
            }
            assert_int_equal(here, d);
        }
}

/* In each round, a node sends equally many blocks to all other nodes of its copy of A, and of B. */
static void check_rounds_of_halves(const struct halves *h)
{
    struct torus t = contract_torus(h->network);
    struct schedule_report r = contract_verify(&t, "halves");
    uint32_t *count = calloc((size_t)4 * t.nodes * h->nodes, sizeof *count);

    assert_non_null(count);
    contract_check(&t, algorithm_find("halves"));
    contract_check_no_gaps(&t, "halves");
    count_rounds(h, &t, h->steps, count);
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t in_a = 0; in_a < 2; in_a++)
            for (uint32_t node = 0; node < t.nodes; node++)
                for (uint32_t other = 0; other < h->nodes; other++) {
                    uint32_t all = other == in_half(h, &t, in_a != 0, node) ? 0
                                   : round == 0                             ? (h->nodes + 1) / 2
                                                                            : h->nodes / 2;
                    assert_int_equal(
                        count[((round * 2 + in_a) * t.nodes + node) * h->nodes + other], all);
                }
    assert_int_equal(r.startups, 2 * h->steps);
    assert_int_equal(r.transmission, a3_transmission(&t));
    assert_int_equal(r.contended_steps, 0);
    assert_true(r.minimal);
    free(count);
}

TEST(two_rounds)
{
    static const struct halves networks[] = {
        {"2x2", {true, false}, 2, 1},
        {"3x3", {true, false}, 3, 1},
        {"4x1x4", {true, false, false}, 4, 2},
        {"5x5", {true, false}, 5, 2},
        {"6x6", {true, false}, 6, 3},
        {"8x8", {true, false}, 8, 4},
        {"5mx5m", {true, false}, 5, 4},
        {"6mx6m", {true, false}, 6, 5},
        {"complete:5^2", {true, false}, 5, 1},
        {"star:4 x star:4", {true, false}, 4, 3},
        {"2m^4", {true, true, false, false}, 4, 2},
        {"2m^6", {true, true, true, false, false, false}, 8, 4},
        {"3x3x3x3", {true, true, false, false}, 9, 2},
        {"3x5x3x5", {true, true, false, false}, 15, 9},
        {"3mx3mx3mx3m", {true, true, false, false}, 9, 4},
    };

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        check_rounds_of_halves(&networks[i]);
    contract_refused("halves", "4x8");
    contract_refused("halves", "8");
    contract_refused("halves", "4x4x4");
}

/* k equal dimensions take k times the steps of one. */
TEST(two_rounds_take_the_bound)
{
    static const struct {
        const char *network;
        uint32_t startups;
        uint64_t transmission;
    } figures_of[] = {{"8x8", 8, 64},      {"16x16", 16, 512},   {"7x7", 6, 42},
                      {"8mx8m", 14, 128},  {"4x4x4x4", 8, 128},  {"2m^8", 8, 128},
                      {"5x5x5x5", 8, 375}, {"8x8x8x8", 16, 4096}};

    for (size_t i = 0; i < sizeof figures_of / sizeof figures_of[0]; i++) {
        struct torus t = contract_torus(figures_of[i].network);
        struct schedule_report r = contract_verify(&t, "halves");
        assert_int_equal(r.startups, figures_of[i].startups);
        assert_int_equal(r.transmission, figures_of[i].transmission);
        assert_true((double)r.transmission == r.bound);
    }
}
