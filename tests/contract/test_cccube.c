/* cccube: the paper's iterations and messages, and their steps in our embedding. */
#include <math.h>

#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

static const struct {
    const char *name;
    uint32_t degree;
} degrees[] = {{"cccube", 1}, {"cccube-q2", 2}, {"cccube-q4", 4}, {"cccube-q8", 8}};

static const char *const shapes[] = {"1",      "2",       "2m",        "8",          "16m",
                                     "1x4",    "2x2",     "4x4",       "4x8m",       "4mx4m",
                                     "8x8",    "8mx8m",   "2x2x2",     "4x2x8",      "4mx4mx4m",
                                     "1x4x1m", "4x4x4x4", "2x2x2x2x2", "2mx2mx2mx2m"};

TEST(delivered)
{
    for (size_t q = 0; q < sizeof degrees / sizeof degrees[0]; q++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            struct torus t = contract_torus(shapes[i]);
            if (algorithm_accepts(algorithm_find(degrees[q].name), &t, NULL) == 0)
                contract_check(&t, algorithm_find(degrees[q].name));
            else
                assert_true(degrees[q].degree > 1 && t.nodes < 2 * degrees[q].degree);
        }
    }
    /* 1, 2, 4, 8 and 16 rows and columns */
    contract_every_rectangle("cccube", 25);
}

/* Section 4: in every iteration a node sends one message of 2^(d-1) blocks; pipelined, Q packets of
 * 2^(d-1)/Q. */
TEST(messages)
{
    for (size_t q = 0; q < sizeof degrees / sizeof degrees[0]; q++) {
        const struct algorithm *a = algorithm_find(degrees[q].name);
        struct torus t = contract_torus("8x4m");
        enum { BITS = 5, STEPS = 4 * (BITS + 8) };
        uint32_t blocks[STEPS][TORUS_MAX_PORTS][3] = {{{0}}};
        uint32_t size = 1u << (BITS - 1), sent = 0;

        /* All messages that leave node 5, its own blocks and others'. */
        for (uint32_t s = 0; s < t.nodes; s++) {
            for (uint32_t d = 0; d < t.nodes; d++) {
                struct leg legs[BITS];
                uint32_t count = s == d ? 0 : algorithm_route(a, &t, s, d, 0, legs), here = s;
                for (uint32_t i = 0; i < count; i++) {
                    unsigned port = torus_port(&t, legs[i].dim, legs[i].direction);
                    assert_in_range(legs[i].hops, 1, 2);
                    if (here == 5)
                        blocks[legs[i].step][port][legs[i].hops]++;
                    here = torus_walk(&t, here, legs[i].dim, legs[i].direction, legs[i].hops);
                }
            }
        }
        for (uint32_t step = 0; step < STEPS; step++) {
            for (unsigned port = 0; port < TORUS_MAX_PORTS; port++) {
                for (unsigned hops = 0; hops < 3; hops++) {
                    uint32_t b = blocks[step][port][hops];
                    assert_int_equal(b % (size / degrees[q].degree), 0);
                    sent += b;
                }
            }
        }
        assert_int_equal(sent, BITS * size);
    }
}

/* ---- The paper's rule, written out independently --------------------------------------------- */

/* A node's number in the hypercube: the bits of the dimensions, dealt in turn, the last dimension
 * first. Standard embedding of an array: the bits of the coordinate. Xor embedding of a ring: the
 * second highest bit of the coordinate is XORed with the highest. */
static uint32_t in_cube(const struct torus *t, uint32_t node)
{
    uint32_t at[TORUS_MAX_DIMS], number = 0;
    unsigned bits = 0;

    torus_coordinates(t, node, at);
    for (unsigned i = 0; i < t->dims; i++)
        if (t->wrap[i] && t->size[i] >= 4 && at[i] >= t->size[i] / 2)
            at[i] ^= t->size[i] / 4;
    for (unsigned bit = 0; bit < 20; bit++)
        for (unsigned i = t->dims; i-- > 0;)
            if (t->size[i] > 1u << bit)
                number |= (at[i] >> bit & 1) << bits++;
    return number;
}

/* Section 4, carried out with numbers of the hypercube. stage[(source * N + destination) * 32 + i]
 * is the stage in which the block is sent in iteration i, counted from 1; 0: it is not. A node has
 * the block for j in M[source XOR j]. Iteration i takes the M[j] with bit i set, in falling order,
 * and sends them in Q packets, packet q in stage i + q. */
static void literal_stages(unsigned d, uint32_t degree, uint32_t *stage)
{
    uint32_t n = 1u << d, half = n / 2;
    struct block {
        uint32_t source, destination;
    } *m = calloc((size_t)n * n, sizeof *m);

    assert_non_null(m);
    for (uint32_t node = 0; node < n; node++)
        for (uint32_t j = 0; j < n; j++)
            m[node * n + (node ^ j)] = (struct block){node, j};
    for (unsigned i = 0; i < d; i++) {
        for (uint32_t node = 0; node < n; node++) {
            uint32_t neighbour = node ^ 1u << i, sent = 0;
            for (uint32_t j = n; j-- > 0;) {
                if ((j >> i & 1) == 0)
                    continue;
                struct block *mine = &m[node * n + j], *its = &m[neighbour * n + j], kept = *mine;
                stage[(mine->source * n + mine->destination) * 32 + i] =
                    1 + i + sent++ * degree / half;
                if (node > neighbour) { /* after both have chosen their blocks */
                    *mine = *its;
                    *its = kept;
                }
            }
        }
    }
    for (uint32_t node = 0; node < n; node++)
        for (uint32_t j = 0; j < n; j++)
            assert_int_equal(m[node * n + (node ^ j)].destination, node);
    free(m);
}

/* The stages, as the routes have them. */
struct stages {
    uint32_t *first, *last; /* by stage: its first and last step */
    bool *seen;             /* (stage, node, port, hops): there is such a message */
    uint32_t *load;         /* (stage, node, port): messages that cross the channel in the stage */
};

/* Checks that every leg changes the iteration's bit of the node's number on a shortest path, in the
 * iteration's stage, and that no step is in two stages. */
static void walk_stages(const struct torus *t, const struct algorithm *a, const uint32_t *stage,
                        uint32_t stages, struct stages *s)
{
    uint32_t ports = torus_ports(t), longest = t->nodes;

    for (uint32_t source = 0; source < t->nodes; source++) {
        for (uint32_t destination = 0; destination < t->nodes; destination++) {
            struct leg legs[32];
            uint32_t key = in_cube(t, source) * t->nodes + in_cube(t, destination), leg = 0;
            uint32_t here = source;
            uint32_t count =
                source == destination ? 0 : algorithm_route(a, t, source, destination, 0, legs);
            for (unsigned i = 0; i < 32; i++) {
                uint32_t of = stage[key * 32 + i];
                if (of == 0)
                    continue;
                assert_true(leg < count && of <= stages);
                const struct leg *l = &legs[leg++];
                unsigned port = torus_port(t, l->dim, l->direction);
                uint32_t end = torus_walk(t, here, l->dim, l->direction, l->hops);
                assert_int_equal(in_cube(t, end), in_cube(t, here) ^ 1u << i);
                assert_int_equal(torus_distance(t, here, end), l->hops);
                s->first[of] = l->step < s->first[of] ? l->step : s->first[of];
                s->last[of] = l->step > s->last[of] ? l->step : s->last[of];
                uint32_t place = (of * t->nodes + here) * ports + port;
                bool *seen = &s->seen[place * (longest + 1) + l->hops], known = *seen;
                *seen = true;
                for (uint32_t hop = 0; hop < l->hops && !known; hop++) {
                    uint32_t at = torus_walk(t, here, l->dim, l->direction, hop);
                    s->load[(of * t->nodes + at) * ports + port]++;
                }
                here = end;
            }
            assert_int_equal(leg, count);
            assert_int_equal(here, destination);
        }
    }
}

/* Checks that a stage has as many steps as messages cross its busiest channel. */
static void check_stages(const struct torus *t, const struct algorithm *a)
{
    unsigned d = 0;
    while (1u << d < t->nodes)
        d++;
    uint32_t stages = d + a->degree - 1, places = (stages + 1) * t->nodes * torus_ports(t);
    uint32_t *stage = calloc((size_t)t->nodes * t->nodes * 32, sizeof *stage), next = 0;
    struct stages s = {.first = malloc((stages + 1) * sizeof *s.first),
                       .last = calloc(stages + 1, sizeof *s.last),
                       .seen = calloc((size_t)places * (t->nodes + 1), sizeof *s.seen),
                       .load = calloc(places, sizeof *s.load)};

    assert_true(stage && s.first && s.last && s.seen && s.load);
    memset(s.first, 0xff, (stages + 1) * sizeof *s.first);
    literal_stages(d, a->degree, stage);
    walk_stages(t, a, stage, stages, &s);
    for (uint32_t of = 1; of <= stages; of++) {
        uint32_t most = 0, per_stage = t->nodes * torus_ports(t);
        for (uint32_t i = of * per_stage; i < (of + 1) * per_stage; i++)
            most = s.load[i] > most ? s.load[i] : most;
        assert_int_equal(s.first[of], next);
        assert_int_equal(s.last[of], next + most - 1);
        next += most;
    }
    assert_int_equal(contract_verify(t, a->name).contended_steps, 0);
    free(stage);
    free(s.first);
    free(s.last);
    free(s.seen);
    free(s.load);
}

static const char *const small[] = {"2",   "8",        "16m",   "1x4",   "2x2",
                                    "4x4", "4x8m",     "32",    "2x8",   "4x2x4",
                                    "8x4", "4mx4mx2m", "2mx16", "8mx8m", "8x8"};

TEST(stages_of_the_paper)
{
    static const uint32_t some[] = {1, 2, 3, 4, 5, 7, 8, 13, 16, 32};

    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        struct torus t = contract_torus(small[i]);
        for (size_t q = 0; q < sizeof some / sizeof some[0]; q++)
            if (some[q] == 1 || some[q] <= t.nodes / 2)
                check_stages(&t, family_of_degree(&family_cccube, some[q]));
    }
}

/* ---- Any degree ------------------------------------------------------------------------------ */

/* counts() computes what enumeration finds, for every degree. */
TEST(counts)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        uint32_t most = cccube_most(&family_cccube, &t);
        for (uint32_t degree = 1; degree <= most; degree += t.nodes > 64 ? 19 : 1) {
            const struct algorithm *a = family_of_degree(&family_cccube, degree);
            assert_non_null(a);
            struct schedule_report r = contract_verify(&t, a->name);
            struct cost_counts c = cccube_counts(&family_cccube, &t, degree);
            assert_true(c.startups == r.startups);
            assert_true(c.transmission == (double)r.transmission);
            assert_true(c.hops == (double)r.hops);
            assert_int_equal(r.contended_steps, 0);
            contract_check_no_gaps(&t, a->name);
            if (t.nodes / 2 % degree == 0 && t.nodes > 1)
                assert_true(c.transmission == c.startups * (t.nodes / 2 / degree));
        }
    }
}

TEST(any_degree_is_delivered)
{
    static const char *const names[] = {"cccube-q3", "cccube-q5", "cccube-q6", "cccube-q7"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        for (size_t q = 0; q < sizeof names / sizeof names[0]; q++)
            if (t.nodes <= 64 && algorithm_accepts(algorithm_find(names[q]), &t, NULL) == 0)
                contract_check(&t, algorithm_find(names[q]));
    }
}

TEST(names)
{
    static const char *const unknown[] = {
        "cccube-q",    "cccube-q0", "cccube-q05", "cccube-q5x",      "cccube-",
        "cccube5",     "cccube-Q5", "cccube-q-5", "cccube-q1048577", "cccube-q99999999999",
        "cccube-best", "at2-q5"};
    struct torus t = contract_torus("4x4"), odd = contract_torus("5x5");
    struct error e = {.code = ERROR_NONE};
    const struct algorithm *five = algorithm_find("cccube-q5");

    assert_non_null(five);
    assert_string_equal(five->name, "cccube-q5");
    assert_int_equal(five->degree, 5);
    assert_ptr_equal(algorithm_find("cccube-q5"), five);
    assert_ptr_equal(algorithm_find("cccube-q1"), algorithm_find("cccube"));
    assert_false(algorithm_is_listed(five));
    assert_true(algorithm_is_listed(algorithm_find("cccube-q4")));
    assert_int_equal(algorithm_find("cccube-q4")->degree, 4);
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        assert_null(algorithm_find(unknown[i]));

    assert_int_equal(algorithm_accepts(five, &t, &e), 0);
    assert_fails(algorithm_accepts(algorithm_find("cccube-q9"), &t, &e), e, ERROR_REFUSED,
                 "cccube-q8");
    assert_fails(algorithm_accepts(five, &odd, &e), e, ERROR_REFUSED, "5x5");

    /* a schedule cannot have that many steps */
    struct torus large = contract_torus("1024x1024");
    uint32_t most = cccube_most(&family_cccube, &large);
    assert_in_range(most, 15000, 30000);
    assert_true(cccube_counts(&family_cccube, &large, most).startups <= 1 << 23);
    assert_true(cccube_counts(&family_cccube, &large, most + 2 * 20).startups > 1 << 23);
    assert_ptr_equal(family_of_best("cccube-best"), &family_cccube);
    assert_null(family_of_best("cccube"));
}

/* ---- The best degree ------------------------------------------------------------------------- */

static double price(const struct family *f, const struct torus *t, uint32_t degree, void *context)
{
    const double *ratio = context; /* a startup's time in blocks */
    struct cost_counts c = f->counts(f, t, degree);
    return c.startups * *ratio + c.transmission;
}

/* The best degree, by enumeration. */
static uint32_t best_by_enumeration(const struct torus *t, double ratio)
{
    uint32_t best = 0;
    double lowest = 0;
    for (uint32_t degree = 1; degree <= t->nodes / 2; degree++) {
        struct schedule_report r =
            contract_verify(t, family_of_degree(&family_cccube, degree)->name);
        double cost = r.startups * ratio + (double)r.transmission;
        if (best == 0 || cost < lowest) {
            lowest = cost;
            best = degree;
        }
    }
    return best;
}

TEST(best_degree)
{
    static const char *const tori[] = {"4x4", "2x2x2", "4x8", "8x8", "4mx8m", "4x4x4", "2"};
    static const double ratios[] = {0.01, 0.3, 1, 2.5, 7, 30, 200};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i]);
        for (size_t k = 0; k < sizeof ratios / sizeof ratios[0]; k++) {
            double ratio = ratios[k];
            assert_int_equal(family_best(&family_cccube, &t, price, &ratio),
                             best_by_enumeration(&t, ratio));
        }
    }
}

/* Communication pipelining in a hypercube takes (d + Q - 1) * (ts + 2^(d-1)/Q * m*tw), the least at
 * Q = sqrt((d-1) * 2^(d-1) * m*tw / ts). On tori that are hypercubes this Q is the best one here,
 * if it divides the blocks. On others no degree costs less than the formula's minimum. */
TEST(best_degree_by_formula)
{
    static const char *const cubes[] = {"4x4", "4x4x4", "2x2x2", "4x2x4", "4x4x4x4"};

    for (size_t i = 0; i < sizeof cubes / sizeof cubes[0]; i++) {
        struct torus t = contract_torus(cubes[i]);
        double d = 0, blocks = t.nodes / 2;
        while (1u << (unsigned)d < t.nodes)
            d++;
        for (double q = 1; q <= blocks; q *= 2) {
            double ratio = (d - 1) * blocks / (q * q); /* ts, in blocks */
            assert_int_equal(family_best(&family_cccube, &t, price, &ratio), q);
        }
        for (double ratio = 0.1; ratio < 50; ratio *= 1.7) {
            double q = sqrt((d - 1) * blocks / ratio);
            q = q < 1 ? 1 : q > blocks ? blocks : q;
            double formula = (d + q - 1) * (ratio + blocks / q);
            uint32_t best = family_best(&family_cccube, &t, price, &ratio);
            double here = price(&family_cccube, &t, best, &ratio);
            assert_true(here >= formula - 1e-9);
            assert_true(here < 1.12 * formula);
        }
    }
}

TEST(named_figures)
{
    static const struct {
        const char *torus, *algorithm;
        uint32_t startups;
        uint64_t transmission;
        uint32_t contended;
        bool minimal;
    } known[] = {{"4x4", "cccube", 4, 32, 0, true},         {"4x4", "cccube-q2", 5, 20, 0, true},
                 {"4x4", "cccube-q4", 7, 14, 0, true},      {"4x4", "cccube-q8", 11, 11, 0, true},
                 {"8x8", "cccube", 10, 320, 0, false},      {"8x8", "cccube-q2", 12, 192, 0, false},
                 {"8x8", "cccube-q4", 16, 128, 0, false},   {"8x8", "cccube-q8", 29, 116, 0, false},
                 {"4mx4m", "cccube", 6, 48, 0, false},      {"8mx8m", "cccube", 14, 448, 0, false},
                 {"8x8", "cccube-q32", 101, 101, 0, false}, {"4x4", "cccube-q5", 8, 15, 0, true},
                 {"2mx2mx2mx2m", "cccube", 4, 32, 0, true}, {"4x4x4x4", "cccube", 8, 1024, 0, true},
                 {"4x4x4x4", "cccube-q8", 15, 240, 0, true}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct torus t = contract_torus(known[i].torus);
        struct schedule_report r = contract_verify(&t, known[i].algorithm);
        assert_int_equal(r.startups, known[i].startups);
        assert_int_equal(r.transmission, known[i].transmission);
        assert_int_equal(r.contended_steps, known[i].contended);
        assert_int_equal(r.minimal, known[i].minimal);
    }
}

TEST(refusals)
{
    for (size_t q = 0; q < sizeof degrees / sizeof degrees[0]; q++) {
        contract_refused(degrees[q].name, "5x5");
        contract_refused(degrees[q].name, "4x6");
        contract_refused(degrees[q].name, "3");
        contract_refused(degrees[q].name, "131072m");
    }
    contract_refused("cccube-q2", "2");
    contract_refused("cccube-q8", "2x4");
}

/* cccube on hypercubes, 2m^d, with one, k and all ports: the message sets of the paper's section 4,
 * iteration i on the cable of one dimension, without contention. */

static struct torus hypercube(unsigned d)
{
    char text[8];
    (void)snprintf(text, sizeof text, "2m^%u", d);
    return contract_torus(text);
}

/* k = 0: all ports. */
static const struct algorithm *variant(unsigned k, uint32_t degree)
{
    char name[32];
    const struct algorithm *a;

    if (k == 0)
        (void)snprintf(name, sizeof name, "cccube-q%u", degree);
    else if (degree == 1)
        (void)snprintf(name, sizeof name, "cccube-k%u", k);
    else
        (void)snprintf(name, sizeof name, "cccube-k%u-q%u", k, degree);
    a = algorithm_find(name);
    assert_non_null(a);
    assert_int_equal(a->degree, degree);
    return a;
}

/* Section 4, carried out: sets step[(source * N + destination) * d + i] to 1 + the step in which the
 * block leaves in iteration i; 0: it stays. A node keeps the block for j in M[node XOR j]. Iteration i
 * takes the M[j] with bit i set, in falling order of j, in `degree` packets: packet q is in stage
 * i + q. A stage in which more than k iterations are under way takes several steps, in the order of
 * the iterations. Returns how many steps there are. */
static uint32_t literal_steps(unsigned d, uint32_t degree, unsigned k, uint32_t *step)
{
    uint32_t n = 1u << d, half = n / 2, steps = 0;
    uint32_t(*m)[2] = calloc((size_t)n * n, sizeof *m); /* source and destination */
    uint32_t *begin = calloc((size_t)(d + degree) * d, sizeof *begin);

    assert_true(m != NULL && begin != NULL);
    for (uint32_t stage = 0; stage < d + degree - 1; stage++) {
        unsigned busy = 0;
        for (unsigned i = 0; i < d; i++) {
            if (i > stage || stage - i >= degree)
                continue;
            begin[stage * d + i] = steps + busy++ / k;
        }
        steps += (busy + k - 1) / k;
    }
    for (uint32_t node = 0; node < n; node++)
        for (uint32_t j = 0; j < n; j++) {
            m[node * n + (node ^ j)][0] = node;
            m[node * n + (node ^ j)][1] = j;
        }
    for (unsigned i = 0; i < d; i++)
        for (uint32_t node = 0; node < n; node++) {
            uint32_t sent = 0;
            for (uint32_t j = n; j-- > 0;) {
                if ((j >> i & 1) == 0)
                    continue;
                uint32_t *mine = m[node * n + j], *its = m[(node ^ 1u << i) * n + j];
                uint32_t stage = i + sent++ * degree / half;
                step[((size_t)mine[0] * n + mine[1]) * d + i] = 1 + begin[stage * d + i];
                for (unsigned w = 0; w < 2 && node > (node ^ 1u << i); w++) {
                    uint32_t kept = mine[w];
                    mine[w] = its[w];
                    its[w] = kept;
                }
            }
        }
    for (uint32_t node = 0; node < n; node++)
        for (uint32_t j = 0; j < n; j++)
            assert_int_equal(m[node * n + (node ^ j)][1], node);
    free(m);
    free(begin);
    return steps;
}

/* Each block crosses the cable of dimension d-1-i in iteration i, in the step of the paper, and no
 * other. So a message is the set of the paper: the paper's number of a node is its rank. */
static void check_messages(unsigned d, uint32_t degree, unsigned k)
{
    struct torus t = hypercube(d);
    const struct algorithm *a = variant(k, degree);
    unsigned at_once = k == 0 ? d : k;
    uint32_t n = t.nodes, *step = calloc((size_t)n * n * d, sizeof *step);

    assert_non_null(step);
    uint32_t steps = literal_steps(d, degree, at_once, step);
    uint8_t *ports =
        calloc((size_t)steps * n * d, 1); /* whether the node uses the cable in this step */
    assert_non_null(ports);
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t to = 0; to < n; to++) {
            struct leg legs[8];
            uint32_t count = s == to ? 0 : algorithm_route(a, &t, s, to, 0, legs), leg = 0,
                     here = s;
            for (unsigned i = 0; i < d; i++) {
                uint32_t in = step[((size_t)s * n + to) * d + i];
                if (in == 0)
                    continue;
                assert_true(leg < count);
                assert_int_equal(legs[leg].step, in - 1);
                assert_int_equal(legs[leg].dim, d - 1 - i);
                assert_int_equal(legs[leg].hops, 1);
                ports[((size_t)(in - 1) * n + here) * d + i] = 1;
                here = torus_walk(&t, here, legs[leg].dim, legs[leg].direction, 1);
                leg++;
            }
            assert_int_equal(leg, count);
            assert_int_equal(here, to);
        }
    for (size_t i = 0; i < (size_t)steps * n; i++) {
        unsigned busy = 0;
        for (unsigned port = 0; port < d; port++)
            busy += ports[i * d + port];
        assert_in_range(busy, 1, at_once);
    }
    free(step);
    free(ports);
}

static uint32_t divided(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

/* The number of steps, in closed form: the iterations under way grow from 1 to min(d, Q), and shrink. */
static uint32_t startups(unsigned d, uint32_t degree, unsigned k)
{
    uint32_t most = d < degree ? d : degree, ramps = 0;

    for (uint32_t busy = 1; busy < most; busy++)
        ramps += 2 * divided(busy, k);
    return ramps + (d + degree + 1 - 2 * most) * divided(most, k);
}

static void check_costs(unsigned d, uint32_t degree, unsigned k)
{
    struct torus t = hypercube(d);
    struct schedule_report r = contract_verify(&t, variant(k, degree)->name);
    uint32_t blocks = t.nodes / 2;

    assert_int_equal(r.startups, startups(d, degree, k == 0 ? d : k));
    if (blocks % degree == 0)
        assert_int_equal(r.transmission, r.startups * (blocks / degree));
    assert_int_equal(r.contended_steps, 0);
    assert_true(r.minimal);
    assert_true(k != 1 || r.one_port_kept);
}

TEST(hypercubes)
{
    static const uint32_t some[] = {1, 2, 3, 4, 5, 8, 16, 21, 64};

    for (unsigned d = 1; d <= 7; d++)
        for (unsigned k = 0; k <= d; k++)
            for (size_t q = 0; q < sizeof some / sizeof some[0]; q++) {
                if (some[q] > 1u << (d - 1))
                    continue;
                check_messages(d, some[q], k);
                check_costs(d, some[q], k);
            }
    check_messages(8, 1, 0);
    check_messages(8, 16, 3);
}

/* ---- On other networks ----------------------------------------------------------------------- */

/* Most messages that a node sends, or receives, in a step. */
static uint32_t messages_at_once(const struct torus *t, const struct algorithm *a, uint32_t steps)
{
    uint32_t ports = torus_ports(t), most = 0, longest = t->nodes;
    uint8_t *seen = calloc((size_t)steps * t->nodes * ports * longest, 1);
    uint32_t *count = calloc((size_t)steps * t->nodes * 2, sizeof *count);

    assert_true(seen != NULL && count != NULL);
    for (uint32_t s = 0; s < t->nodes; s++)
        for (uint32_t to = 0; to < t->nodes; to++) {
            struct leg legs[32];
            uint32_t legs_count = s == to ? 0 : algorithm_route(a, t, s, to, 0, legs), here = s;
            for (uint32_t i = 0; i < legs_count; i++) {
                const struct leg *l = &legs[i];
                uint32_t end = torus_walk(t, here, l->dim, l->direction, l->hops);
                size_t place = (size_t)l->step * t->nodes;
                size_t message = (place + here) * ports + torus_port(t, l->dim, l->direction);
                if (seen[message * longest + l->hops]++ == 0) {
                    uint32_t sent = ++count[2 * (place + here)];
                    uint32_t received = ++count[2 * (place + end) + 1];
                    most = sent > most ? sent : most;
                    most = received > most ? received : most;
                }
                seen[message * longest + l->hops] = 1;
                here = end;
            }
        }
    free(seen);
    free(count);
    return most;
}

TEST(tori_and_meshes)
{
    static const char *const tori[] = {"1",     "2",     "4x4",          "8x4m",
                                       "8x8",   "4mx4m", "16m",          "2x2x2",
                                       "4x2x8", "2m^4",  "complete:2^4", "complete:2 x 4m x 2"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i]);
        for (unsigned k = 1; k <= CCCUBE_PORTS_MOST; k += k < 3 ? 1 : 5)
            for (uint32_t degree = 1; degree <= t.nodes / 2; degree += degree < 4 ? 1 : 9) {
                const struct algorithm *a = variant(k, degree);
                struct schedule_report r = contract_verify(&t, a->name);
                struct cost_counts c = cccube_counts(a->family, &t, degree);
                contract_check(&t, a);
                assert_true(c.startups == r.startups);
                assert_true(c.transmission == (double)r.transmission);
                assert_true(c.hops == (double)r.hops);
                assert_int_equal(r.contended_steps, 0);
                assert_in_range(messages_at_once(&t, a, r.startups), 1, k);
            }
    }
}

/* ---- Rings: client/doc/open-questions.md ----------------------------------------------------- */

/* The place of a number on a ring of n nodes, as in_cube() has it. */
static uint32_t place_on_ring(uint32_t n, uint32_t number)
{
    uint32_t quarter = n / 4;
    return (number & 2 * quarter) != 0 ? number ^ quarter : number;
}

/* If every quarter of a ring's nodes begins one numbering, moved along, all channels carry the same: what they do on
 * average. One numbering alone loads some channels more. */
TEST(moved_numberings_share_evenly)
{
    for (uint32_t n = 4; n <= 64; n *= 2) {
        uint32_t load[64][2] = {{0}}, most = 0;
        for (uint32_t moved = 0; moved < n / 4; moved++) {
            for (uint32_t number = 0; number < n; number++)
                for (uint32_t bit = 1; bit < n; bit *= 2) {
                    uint32_t from = (place_on_ring(n, number) + moved) % n;
                    uint32_t to = (place_on_ring(n, number ^ bit) + moved) % n;
                    bool back = (to + n - from) % n > n / 2;
                    for (; from != to; from = (from + (back ? n - 1 : 1)) % n)
                        load[from][back]++;
                }
            for (uint32_t i = 0; i < n && moved == 0; i++)
                most = load[i][0] > most ? load[i][0] : most;
        }
        for (uint32_t i = 0; i < n; i++)
            for (unsigned back = 0; back < 2; back++)
                assert_int_equal(load[i][back], n * (3 * n - 4) / 32);
        assert_int_equal(most, n == 4 ? 1 : n == 8 ? 3 : most);
        assert_true(n == 4 || most * (n / 4) > load[0][0]);
    }
}

/* The hops of the edges of a 3-cube whose node i is at place[i] of a ring of 8. */
static uint32_t hops_of_cube(const uint32_t *place)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < 8; i++)
        for (uint32_t bit = 1; bit < 8; bit *= 2) {
            uint32_t forth = (place[i ^ bit] + 8 - place[i]) % 8;
            sum += forth < 8 - forth ? forth : 8 - forth;
        }
    return sum / 2;
}

/* The fewest hops of all numberings that begin like this. */
static uint32_t fewest_hops(uint32_t *place, uint32_t placed)
{
    uint32_t best = UINT32_MAX;

    if (placed == 8)
        return hops_of_cube(place);
    for (uint32_t at = 1; at < 8; at++) {
        bool taken = false;
        for (uint32_t i = 1; i < placed; i++)
            taken = taken || place[i] == at;
        if (taken)
            continue;
        place[placed] = at;
        uint32_t hops = fewest_hops(place, placed + 1);
        best = hops < best ? hops : best;
    }
    return best;
}

TEST(no_numbering_of_8_has_fewer_hops)
{
    uint32_t place[8] = {0}, ours[8];

    for (uint32_t i = 0; i < 8; i++)
        ours[i] = place_on_ring(8, i);
    assert_int_equal(hops_of_cube(ours), 20);
    assert_int_equal(fewest_hops(place, 1), 20);
}

TEST(port_names)
{
    static const char *const unknown[] = {"cccube-k0",    "cccube-k9",  "cccube-k",    "cccube-k2-",
                                          "cccube-k2-q0", "cccube-k2x", "cccube-q2-k2"};
    struct torus t = contract_torus("4x4"), odd = contract_torus("5x5");
    struct error e = {.code = ERROR_NONE};
    const struct algorithm *two = algorithm_find("cccube-k2");

    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        assert_null(algorithm_find(unknown[i]));
    assert_non_null(two);
    assert_string_equal(algorithm_ports_name(two), "2-port");
    assert_string_equal(algorithm_bound_name(two), "2-port");
    assert_true(algorithm_bound(two, &t) == 8); /* the cut, or 15 blocks by 2 ports: 7.5 */
    assert_string_equal(algorithm_ports_name(algorithm_find("cccube-k1")), "one-port");
    assert_true(algorithm_bound(algorithm_find("cccube-k1"), &t) == 15);
    assert_ptr_equal(algorithm_find("cccube-k2-q1"), two);
    assert_string_equal(algorithm_find("cccube-k2-q4")->name, "cccube-k2-q4");
    assert_false(algorithm_is_listed(two));
    assert_ptr_equal(family_of_best("cccube-k2-best"), two->family);
    assert_int_equal(family_check("cccube-k2-q8", &t, &e), 0);
    assert_fails(family_check("cccube-k2-q9", &t, &e), e, ERROR_REFUSED, "");
    assert_int_equal(family_check("cccube-k2", &odd, &e), -1);
    contract_refused("cccube-k1", "5x5");
    contract_refused("cccube-k3-q2", "4x6");
    contract_refused("cccube-k2", "star:4");
    contract_refused("cccube", "complete:4 x 4");

    /* a schedule cannot have that many steps */
    struct torus large = contract_torus("1024x1024");
    const struct family *one = algorithm_find("cccube-k1")->family;
    uint32_t most = cccube_most(one, &large);
    assert_in_range(most, 1000, 30000);
    assert_true(cccube_counts(one, &large, most).startups <= 1 << 23);
}
