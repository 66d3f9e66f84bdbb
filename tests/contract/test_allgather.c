/* All-to-all broadcast: the routes of each source are a tree that reaches every node once, the
 * verifier's report agrees with a plain count of all trees, no channel carries more than the bound,
 * and the plans of all nodes together carry out the trees. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/plan.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

enum { MOST = 12 };         /* rows, and columns */
enum { MOST_PLANNED = 64 }; /* nodes of tori on which all plans are put together */

/* How one source's block reaches a node. */
struct branch {
    bool there;
    uint32_t from;
    struct leg leg;
};

/* All trees, counted by following every route. */
struct forest {
    const struct torus *torus;
    const struct algorithm *algorithm;
    struct branch *branch; /* source * N + node */
    uint32_t steps;
    uint64_t *load; /* (step * N + node) * ports + port -> blocks on the channel */
    bool minimal;
};

static size_t channel(const struct forest *f, uint32_t step, uint32_t node, unsigned port)
{
    return ((size_t)step * f->torus->nodes + node) * torus_ports(f->torus) + port;
}

static struct branch *branch_of(const struct forest *f, uint32_t source, uint32_t node)
{
    return &f->branch[(size_t)source * f->torus->nodes + node];
}

/* Follows a whole route, and checks that it agrees with earlier routes of the source at all nodes
 * that they share. */
static void walk(struct forest *f, uint32_t source, uint32_t destination, const struct leg *legs,
                 uint32_t count)
{
    const struct torus *t = f->torus;
    uint32_t here = source, hops = 0;

    assert_in_range(count, 1, algorithm_max_legs(f->algorithm, t));
    for (uint32_t i = 0; i < count; i++) {
        const struct leg *leg = &legs[i];
        unsigned port = torus_port(t, leg->dim, leg->direction);
        uint32_t end = torus_neighbour(t, here, port);

        assert_int_equal(leg->hops, 1);
        assert_true(leg->dim < t->dims && (leg->direction == 1 || leg->direction == -1));
        assert_true(leg->step < f->steps && (i == 0 || leg->step > leg[-1].step));
        assert_true(end != TORUS_NO_NODE && end != source);
        struct branch *b = branch_of(f, source, end);
        if (b->there) {
            assert_int_equal(b->from, here);
            assert_int_equal(b->leg.step, leg->step);
            assert_int_equal(b->leg.dim, leg->dim);
            assert_int_equal(b->leg.direction, leg->direction);
        } else {
            *b = (struct branch){.there = true, .from = here, .leg = *leg};
            f->load[channel(f, leg->step, here, port)]++;
        }
        here = end;
        hops++;
    }
    assert_int_equal(here, destination);
    f->minimal = f->minimal && hops == torus_distance(t, source, destination);
}

static void grow(struct forest *f, const struct torus *t, const struct algorithm *a)
{
    struct leg *legs = calloc((size_t)algorithm_max_legs(a, t) + 1, sizeof *legs);

    *f = (struct forest){
        .torus = t, .algorithm = a, .steps = torus_diameter(t) + 1, .minimal = true};
    f->branch = calloc((size_t)t->nodes * t->nodes, sizeof *f->branch);
    f->load = calloc(channel(f, f->steps, 0, 0), sizeof *f->load);
    assert_true(legs && f->branch && f->load);
    for (uint32_t s = 0; s < t->nodes; s++)
        for (uint32_t d = 0; d < t->nodes; d++)
            if (s != d)
                walk(f, s, d, legs, algorithm_route(a, t, s, d, 0, legs));
    free(legs);
}

static void fell(struct forest *f)
{
    free(f->branch);
    free(f->load);
}

static void check_report(const struct forest *f, const struct schedule_report *r)
{
    unsigned ports = torus_ports(f->torus);
    uint64_t transmission = 0, busiest = 0;
    uint32_t startups = 0;

    for (uint32_t step = 0; step < f->steps; step++) {
        uint64_t most = 0;
        for (size_t i = channel(f, step, 0, 0); i < channel(f, step + 1, 0, 0); i++)
            most = f->load[i] > most ? f->load[i] : most;
        transmission += most;
        startups += most > 0;
    }
    for (size_t i = 0; i < (size_t)f->torus->nodes * ports; i++) {
        uint64_t total = 0;
        for (uint32_t step = 0; step < f->steps; step++)
            total += f->load[(size_t)step * f->torus->nodes * ports + i];
        busiest = total > busiest ? total : busiest;
    }
    assert_int_equal(r->startups, startups);
    assert_int_equal(r->transmission, transmission);
    assert_int_equal(r->busiest, busiest);
    assert_int_equal(r->contended_steps, 0);
    assert_int_equal(r->minimal, f->minimal);
    assert_true(r->bound == torus_bound_broadcast(f->torus));
    assert_true((double)r->busiest >= r->bound);
    assert_true(r->critical_path >= r->busiest && r->critical_path <= r->transmission);
}

/* A block in one node's plan: there since the end of step `came`, in `slot`. */
struct copy {
    bool there;
    uint32_t came, slot, last;
};

/* Carries out one message of `from`. */
static void carry(const struct forest *f, const struct plan *plans, const struct plan *from,
                  const struct plan_message *m, struct copy *copies)
{
    const struct torus *t = f->torus;
    uint32_t end = torus_neighbour(t, from->rank, m->port);
    const struct plan_message *arrival =
        plan_arrival(&plans[end], m->step, (uint8_t)torus_port_opposite(t, m->port), m->hops, 0);

    assert_non_null(arrival);
    assert_int_equal(arrival->blocks, m->blocks);
    assert_true(m->first + m->blocks <= from->blocks);
    assert_true(arrival->first + arrival->blocks <= plans[end].blocks);
    for (uint32_t i = 0; i < m->blocks; i++) {
        const struct plan_block *out = &from->block[m->first + i];
        const struct plan_block *in = &plans[end].block[arrival->first + i];
        const struct branch *b = branch_of(f, out->source, end);
        struct copy *mine = &copies[(size_t)from->rank * t->nodes + out->source];
        struct copy *theirs = &copies[(size_t)end * t->nodes + out->source];

        assert_true(i == 0 || out[-1].source < out->source);
        assert_int_equal(in->source, out->source);
        assert_int_equal(in->destination, end);
        assert_int_equal(out->destination, end);
        assert_true(b->there && b->from == from->rank && b->leg.step == m->step);
        assert_int_equal(torus_port(t, b->leg.dim, b->leg.direction), m->port);
        if (out->source == from->rank) {
            assert_int_equal(out->slot, PLAN_NO_SLOT);
        } else {
            assert_true(mine->there && mine->came < m->step);
            assert_true(mine->slot < from->slots);
            assert_int_equal(out->slot, mine->slot);
            mine->last = m->step;
        }
        assert_false(theirs->there);
        *theirs = (struct copy){.there = true, .came = m->step, .slot = in->slot};
    }
}

/* Checks that a node has all blocks at the end, and had each one that it sent on in a slot of its
 * own. */
static void check_copies(const struct forest *f, const struct plan *p, const struct copy *copies)
{
    uint32_t nodes = f->torus->nodes, slots = 0, most = 0;
    uint8_t *used = calloc((size_t)p->slots + 1, 1);

    assert_non_null(used);
    for (uint32_t source = 0; source < nodes; source++) {
        const struct copy *c = &copies[source];
        assert_int_equal(c->there, source != p->rank);
        if (!c->there || c->slot == PLAN_NO_SLOT)
            continue;
        assert_true(c->last > c->came); /* another node's block has a slot only if it is sent on */
        assert_int_equal(used[c->slot]++, 0);
        slots++;
    }
    assert_int_equal(slots, p->slots);
    for (uint32_t step = 0; step < p->steps; step++) {
        uint32_t now = 0;
        for (uint32_t source = 0; source < nodes; source++)
            now += copies[source].there && copies[source].slot != PLAN_NO_SLOT &&
                   copies[source].came <= step && step < copies[source].last;
        most = now > most ? now : most;
    }
    assert_int_equal(p->peak_transit, most);
    free(used);
}

static void check_plans(const struct forest *f)
{
    const struct torus *t = f->torus;
    struct plan *plans = calloc(t->nodes, sizeof *plans);
    struct copy *copies = calloc((size_t)t->nodes * t->nodes, sizeof *copies);
    uint32_t *next = calloc(t->nodes, sizeof *next);
    uint32_t peak = 0, expected;
    uint64_t arrivals = 0, sends = 0;

    assert_true(plans && copies && next);
    for (uint32_t node = 0; node < t->nodes; node++) {
        assert_int_equal(plan_build(&plans[node], t, f->algorithm, node, NULL), 0);
        assert_int_equal(plans[node].steps, plans[0].steps);
        arrivals += plans[node].arrivals;
        sends += plans[node].sends;
    }
    assert_int_equal(arrivals, sends);
    for (uint32_t step = 0; step < plans[0].steps; step++)
        for (uint32_t node = 0; node < t->nodes; node++)
            for (; next[node] < plans[node].sends; next[node]++) {
                const struct plan_message *m = &plans[node].send[next[node]];
                if (m->step != step)
                    break;
                carry(f, plans, &plans[node], m, copies);
            }
    for (uint32_t node = 0; node < t->nodes; node++) {
        assert_int_equal(next[node], plans[node].sends);
        check_copies(f, &plans[node], copies + (size_t)node * t->nodes);
        peak = plans[node].peak_transit > peak ? plans[node].peak_transit : peak;
        plan_free(&plans[node]);
    }
    assert_int_equal(plan_peak_transit(t, f->algorithm, &expected, NULL), 0);
    assert_int_equal(expected, peak);
    free(plans);
    free(copies);
    free(next);
}

static struct schedule_report check(const struct torus *t, const char *name)
{
    struct forest f;

    grow(&f, t, algorithm_find(name));
    struct schedule_report r = contract_verify(t, name);
    check_report(&f, &r);
    if (t->nodes <= MOST_PLANNED)
        check_plans(&f);
    fell(&f);
    return r;
}

static struct torus shape(uint32_t rows, uint32_t columns, bool wrap_rows, bool wrap_columns)
{
    struct torus t = contract_rectangle(rows, columns);
    t.wrap[0] = wrap_rows;
    t.wrap[1] = wrap_columns;
    return t;
}

/* No channel carries more than the bound; the published pattern has this property on n x n only. */
TEST(balanced_within_the_bound)
{
    for (uint32_t rows = 1; rows <= MOST; rows++) {
        for (uint32_t columns = 1; columns <= MOST; columns++) {
            for (int wraps = 0; wraps < 2; wraps++) {
                struct torus t = shape(rows, columns, wraps, wraps);
                struct schedule_report r = check(&t, "balanced");
                assert_true((double)r.busiest == r.bound);
                assert_true(r.minimal);
                assert_int_equal(r.startups, torus_diameter(&t));
            }
        }
    }
}

/* The least that the busiest channel of a cylinder can carry: the bound. With rings of two, at
 * least the blocks of its own line, which an end of the other dimension can receive by one link
 * only. */
static double least_on_cylinder(const struct schedule_report *r, uint32_t ring, uint32_t line)
{
    return ring == 2 && line - 1 > r->bound ? line - 1 : r->bound;
}

/* Tori on which only one dimension wraps. */
TEST(balanced_on_cylinders)
{
    for (uint32_t rows = 2; rows <= MOST; rows++) {
        for (uint32_t columns = 2; columns <= MOST; columns++) {
            struct torus t = shape(rows, columns, true, false);
            struct schedule_report r = check(&t, "balanced");
            assert_true(r.minimal);
            assert_true((double)r.busiest == least_on_cylinder(&r, rows, columns));
            t = shape(rows, columns, false, true);
            r = check(&t, "balanced");
            assert_true((double)r.busiest == least_on_cylinder(&r, columns, rows));
        }
    }
}

TEST(balanced_other_shapes)
{
    static const char *const shapes[] = {"1",   "2",      "2m",      "9",    "8m",
                                         "1x1", "1x5x4m", "3x1x1x4", "1x7m", "6mx1x5m"};
    static const char *const refused[] = {"2x2x2", "3x4x1x5m"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        assert_true((double)check(&t, "balanced").busiest == torus_bound_broadcast(&t));
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct torus t = contract_torus(refused[i]);
        struct error e;
        assert_fails(algorithm_accepts(algorithm_find("balanced"), &t, &e), e, ERROR_REFUSED, "");
    }
}

/* test_matched.c has the loads. */
TEST(matched_delivers)
{
    static const char *const shapes[] = {"2x2x2",      "3x3x3",    "2x3x4",    "4x2x4",
                                         "3mx3mx3m",   "2mx4mx3m", "3x4x3m",   "2x3mx2",
                                         "2x5m x 1x3", "2x2x2x2",  "3x2mx2x3m"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        assert_true(check(&t, "matched").minimal);
    }
}

/* On odd squares every phase is balanced, as in the published pattern. On even ones the exact
 * opposite, alone in the last phase, costs a block. */
TEST(balanced_figures)
{
    for (uint32_t n = 2; n <= 20; n++) {
        struct torus t = contract_rectangle(n, n);
        struct schedule_report r = contract_verify(&t, "balanced");
        assert_int_equal(r.transmission, n * n / 4 + (n % 2 == 0));
        assert_int_equal(r.critical_path, r.transmission);
        assert_int_equal(r.busiest, n * n / 4);
    }
}

/* test_printed.c compares its trees with the paper. */
TEST(yangwang_where_it_is_right)
{
    static const char *const shapes[] = {"1",    "2m",    "9",      "8m",      "1x1",
                                         "1x7m", "5x1x3", "1x5x4m", "6mx1x5m", "3x1x1x4m"};
    static const char *const refused[] = {"2", "4x4", "3x4", "4x3m", "2mx8", "3x3x2", "1x6x1x5m"};

    for (uint32_t rows = 1; rows <= 9; rows++) {
        for (uint32_t columns = 1; columns <= 9; columns++) {
            for (unsigned wraps = 0; wraps < 4; wraps++) {
                struct torus t = shape(rows, columns, wraps & 1, wraps & 2);
                if (algorithm_accepts(algorithm_find("yangwang"), &t, NULL) == 0) {
                    struct schedule_report r = check(&t, "yangwang");
                    assert_true(r.minimal);
                    assert_int_equal(r.startups, torus_diameter(&t));
                }
            }
        }
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        (void)check(&t, "yangwang");
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        contract_refused("yangwang", refused[i]);
}

TEST(saadschultz_everywhere)
{
    static const char *const shapes[] = {"1", "7", "8m", "2x2x2", "3x4x5", "3mx2x4", "2x3x2x2"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        (void)check(&t, "saadschultz");
    }
    for (uint32_t rows = 1; rows <= 8; rows++) {
        for (uint32_t columns = 1; columns <= 8; columns++) {
            for (unsigned wraps = 0; wraps < 4; wraps++) {
                struct torus t = shape(rows, columns, wraps & 1, wraps & 2);
                struct schedule_report r = check(&t, "saadschultz");
                assert_true(r.minimal);
                assert_int_equal(r.startups, torus_diameter(&t));
            }
        }
    }
    for (uint32_t n = 2; n <= 20; n++) {
        struct torus t = contract_rectangle(n, n);
        struct schedule_report r = contract_verify(&t, "saadschultz");
        assert_int_equal(r.transmission, n * n / 2);
        assert_int_equal(r.busiest, n % 2 == 0 ? n * n / 2 - n / 2 : n * (n - 1) / 2);
    }
}

/* Routes on a ring of 4 that are not a tree: to node 2 over node 1, but to node 1 over node 3. */
static uint32_t no_tree_legs(const struct torus *t)
{
    return t->nodes;
}

static uint32_t no_tree(const struct torus *t, uint32_t s, uint32_t d, uint32_t segment,
                        struct leg *legs)
{
    uint32_t offset = (d + t->nodes - s) % t->nodes;
    uint32_t hops = offset == 1 ? 3 : offset == 2 ? 2 : 1;
    int8_t direction = offset == 2 ? 1 : -1;

    for (uint32_t i = 0; i < hops; i++)
        legs[i] = (struct leg){.step = i, .hops = 1, .direction = direction};
    return hops;
}

TEST(verifier_wants_a_tree)
{
    struct algorithm a = {.name = "broken",
                          .operation = OPERATION_ALLGATHER,
                          .segments = 1,
                          .max_legs = no_tree_legs,
                          .period = torus_full_period,
                          .route = no_tree};
    struct torus t = contract_torus("4");
    struct schedule_report r;
    struct error e;

    assert_fails(schedule_verify(&t, &a, &r, &e), e, ERROR_DAMAGED, "");
}

TEST(bounds)
{
    static const struct {
        const char *torus;
        double bound;
    } known[] = {{"1", 0},     {"1x1", 0}, {"2", 1},     {"2m", 1},     {"9", 4},
                 {"9m", 8},    {"1x6", 3}, {"4x4", 4},   {"8x8", 16},   {"5x5", 6},
                 {"4mx4m", 8}, {"2x2", 1}, {"2mx2m", 2}, {"3x4x5", 10}, {"4x4m", 5}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct torus t = contract_torus(known[i].torus);
        assert_true(torus_bound_broadcast(&t) == known[i].bound);
    }
}
