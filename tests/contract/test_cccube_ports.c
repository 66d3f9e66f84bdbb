/* cccube on hypercubes, 2m^d, with one, k and all ports: the message sets of the paper's section 4,
 * iteration i on the cable of one dimension, without contention. */
#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- The paper's rule, written out independently --------------------------------------------- */

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
    static const char *const shapes[] = {"1",     "2",     "4x4",          "8x4m",
                                         "8x8",   "4mx4m", "16m",          "2x2x2",
                                         "4x2x8", "2m^4",  "complete:2^4", "complete:2 x 4m x 2"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
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

TEST(names)
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
    assert_int_equal(family_check("cccube-k2-q9", &t, &e), -1);
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_int_equal(family_check("cccube-k2", &odd, &e), -1);
    contract_refused("cccube-k1", "5x5");
    contract_refused("cccube-k3-q2", "4x6");
    contract_refused("cccube-k2", "star:4");
    contract_refused("cccube", "complete:4 x 4");

    /* a schedule cannot have so many steps */
    struct torus large = contract_torus("1024x1024");
    const struct family *one = algorithm_find("cccube-k1")->family;
    uint32_t most = cccube_most(one, &large);
    assert_in_range(most, 1000, 30000);
    assert_true(cccube_counts(one, &large, most).startups <= 1 << 23);
}
