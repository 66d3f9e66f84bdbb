/* The plans of all nodes of a torus, put together: they must describe the same messages at both
 * ends, and carrying them out must take every block along its route to its destination. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/plan.h"
#include "tests/support/cmocka.h"

/* A block, or segment, on its way. */
struct parcel {
    uint32_t here;
    uint32_t slot; /* its slot at `here` */
    uint32_t next; /* its next leg */
    uint32_t legs;
    struct leg *leg;
};

struct fleet {
    const struct torus *torus;
    const struct algorithm *algorithm;
    struct plan *plan;     /* by node */
    struct parcel *parcel; /* ((source * N) + destination) * segments + segment */
};

static struct parcel *parcel_of(const struct fleet *f, const struct plan_block *b)
{
    size_t pair = (size_t)b->source * f->torus->nodes + b->destination;
    assert_true(b->source < f->torus->nodes && b->destination < f->torus->nodes);
    assert_true(b->segment < f->algorithm->segments);
    return &f->parcel[pair * f->algorithm->segments + b->segment];
}

static void launch(struct fleet *f, const struct torus *t, const struct algorithm *a)
{
    struct error e = {.code = ERROR_NONE};

    *f = (struct fleet){.torus = t, .algorithm = a};
    f->plan = calloc(t->nodes, sizeof *f->plan);
    f->parcel = calloc((size_t)t->nodes * t->nodes * a->segments, sizeof *f->parcel);
    assert_true(f->plan && f->parcel);
    for (uint32_t s = 0; s < t->nodes; s++) {
        assert_success(plan_build(&f->plan[s], t, a, s, &e), e);
        assert_int_equal(f->plan[s].rank, s);
        assert_int_equal(f->plan[s].steps, f->plan[0].steps);
        for (uint32_t d = 0; d < t->nodes; d++) {
            for (uint32_t segment = 0; segment < a->segments; segment++) {
                struct parcel *p = parcel_of(f, &(struct plan_block){s, d, segment, 0});
                *p = (struct parcel){.here = s, .slot = PLAN_NO_SLOT};
                if (s == d)
                    continue;
                p->leg = calloc(algorithm_max_legs(a, t), sizeof *p->leg);
                assert_non_null(p->leg);
                p->legs = algorithm_route(a, t, s, d, segment, p->leg);
            }
        }
    }
}

static void land(struct fleet *f)
{
    size_t parcels = (size_t)f->torus->nodes * f->torus->nodes * f->algorithm->segments;
    for (size_t i = 0; i < parcels; i++)
        free(f->parcel[i].leg);
    for (uint32_t node = 0; node < f->torus->nodes; node++)
        plan_free(&f->plan[node]);
    free(f->plan);
    free(f->parcel);
}

static void check_order(const struct plan *p)
{
    for (uint32_t i = 0; i < p->sends; i++) {
        const struct plan_message *a = &p->send[i], *b = a + 1;
        assert_true(i + 1 == p->sends || a->step < b->step ||
                    (a->step == b->step && a->port < b->port) ||
                    (a->step == b->step && a->port == b->port && a->hops < b->hops));
        for (uint32_t j = 1; j < a->blocks; j++) {
            const struct plan_block *x = &p->block[a->first + j - 1], *y = x + 1;
            assert_true(x->source < y->source ||
                        (x->source == y->source && x->destination < y->destination) ||
                        (x->source == y->source && x->destination == y->destination &&
                         x->segment < y->segment));
        }
    }
    for (uint32_t i = 0; i < p->arrivals; i++) {
        const struct plan_message *a = &p->arrival[i];
        assert_ptr_equal(plan_arrival(p, a->step, a->port, a->hops, a->left), a);
        assert_true(i == 0 || a[-1].step <= a->step);
    }
}

/* Checks a message at both ends and in between. Returns its arrival at the end. */
static const struct plan_message *check_message(const struct fleet *f, uint32_t start,
                                                const struct plan_message *m, uint32_t *end)
{
    const struct plan *from = &f->plan[start];
    const struct plan_message *arrival = NULL;
    uint8_t in = (uint8_t)torus_port_opposite(f->torus, m->port);
    uint32_t here = start;

    assert_int_equal(m->left, 0);
    for (uint16_t left = m->hops; left-- > 0;) {
        here = torus_neighbour(f->torus, here, m->port);
        assert_true(here != TORUS_NO_NODE);
        arrival = plan_arrival(&f->plan[here], m->step, in, m->hops, left);
        assert_non_null(arrival);
        assert_int_equal(arrival->blocks, m->blocks);
    }
    assert_non_null(arrival);
    const struct plan_block *a = &from->block[m->first];
    const struct plan_block *b = &f->plan[here].block[arrival->first];
    assert_true(m->blocks > 0);
    assert_true(m->first + m->blocks <= from->blocks);
    assert_true(arrival->first + arrival->blocks <= f->plan[here].blocks);
    for (uint32_t i = 0; i < m->blocks; i++) {
        assert_int_equal(a[i].source, b[i].source);
        assert_int_equal(a[i].destination, b[i].destination);
        assert_int_equal(a[i].segment, b[i].segment);
    }
    *end = here;
    return arrival;
}

/* Carries out a message: each block must be where the message starts, in its slot, and do the next
 * leg of its route. */
static void carry(const struct fleet *f, uint32_t start, const struct plan_message *m,
                  uint8_t *slots)
{
    uint32_t end;
    const struct plan_message *arrival = check_message(f, start, m, &end);

    for (uint32_t i = 0; i < m->blocks; i++) {
        const struct plan_block *out = &f->plan[start].block[m->first + i];
        const struct plan_block *in = &f->plan[end].block[arrival->first + i];
        struct parcel *p = parcel_of(f, out);

        assert_true(p->next < p->legs);
        const struct leg *leg = &p->leg[p->next++];
        assert_int_equal(leg->step, m->step);
        assert_int_equal(torus_port(f->torus, leg->dim, leg->direction), m->port);
        assert_int_equal(leg->hops, m->hops);
        assert_int_equal(p->here, start);
        assert_int_equal(p->slot, out->slot);
        p->here = end;
        p->slot = in->slot;
        if (p->next == p->legs) {
            assert_int_equal(end, in->destination);
            assert_int_equal(in->slot, PLAN_NO_SLOT);
        } else {
            assert_true(in->slot < f->plan[end].slots);
            assert_int_equal(slots[in->slot]++, 0); /* a slot is used once */
        }
    }
}

/* What is counted while the plans are carried out; arrays have an entry for each node. */
struct voyage {
    uint8_t **slots;  /* how often each slot has been used */
    uint32_t *next;   /* next message to send */
    uint32_t *peaks;  /* blocks in transit */
    int64_t expected; /* arrivals that are still expected */
};

static void embark(struct voyage *v, const struct fleet *f)
{
    uint32_t nodes = f->torus->nodes;

    *v = (struct voyage){.slots = calloc(nodes, sizeof *v->slots),
                         .next = calloc(nodes, sizeof *v->next),
                         .peaks = calloc(nodes, sizeof *v->peaks)};
    assert_true(v->slots && v->next && v->peaks);
    for (uint32_t node = 0; node < nodes; node++) {
        v->slots[node] = calloc((size_t)f->plan[node].slots + 1, 1);
        assert_non_null(v->slots[node]);
        v->expected += f->plan[node].arrivals;
    }
}

static void disembark(struct voyage *v, uint32_t nodes)
{
    for (uint32_t node = 0; node < nodes; node++)
        free(v->slots[node]);
    free(v->slots);
    free(v->next);
    free(v->peaks);
}

static void send_step(struct voyage *v, const struct fleet *f, uint32_t node, uint32_t step)
{
    const struct plan *p = &f->plan[node];

    for (; v->next[node] < p->sends && p->send[v->next[node]].step == step; v->next[node]++) {
        const struct plan_message *m = &p->send[v->next[node]];
        uint32_t end = torus_walk(f->torus, node, torus_port_dim(f->torus, m->port),
                                  torus_port_direction(f->torus, m->port), m->hops);
        assert_true(end != TORUS_NO_NODE);
        carry(f, node, m, v->slots[end]);
        v->expected -= m->hops;
    }
}

static size_t parcels_of(const struct fleet *f)
{
    return (size_t)f->torus->nodes * f->torus->nodes * f->algorithm->segments;
}

/* Counts the blocks that wait after a step. */
static void note_peaks(struct voyage *v, const struct fleet *f)
{
    uint32_t *waiting = calloc(f->torus->nodes, sizeof *waiting);

    assert_non_null(waiting);
    for (size_t i = 0; i < parcels_of(f); i++)
        waiting[f->parcel[i].here] +=
            f->parcel[i].next > 0 && f->parcel[i].next < f->parcel[i].legs;
    for (uint32_t node = 0; node < f->torus->nodes; node++)
        if (waiting[node] > v->peaks[node])
            v->peaks[node] = waiting[node];
    free(waiting);
}

/* Checks that every block has reached its destination, every expected message was sent, and every
 * slot was used. */
static void check_arrived(const struct voyage *v, const struct fleet *f)
{
    uint32_t peak = 0, expected;

    for (size_t i = 0; i < parcels_of(f); i++)
        assert_int_equal(f->parcel[i].next, f->parcel[i].legs);
    assert_int_equal(v->expected, 0);
    for (uint32_t node = 0; node < f->torus->nodes; node++) {
        assert_int_equal(v->next[node], f->plan[node].sends);
        for (uint32_t slot = 0; slot < f->plan[node].slots; slot++)
            assert_int_equal(v->slots[node][slot], 1);
        assert_int_equal(f->plan[node].peak_transit, v->peaks[node]);
        peak = v->peaks[node] > peak ? v->peaks[node] : peak;
    }
    assert_int_equal(plan_peak_transit(f->torus, f->algorithm, &expected, NULL), 0);
    assert_int_equal(expected, peak);
}

static void check_plans(const char *text, const struct algorithm *a)
{
    struct torus t;
    struct fleet f;
    struct voyage v;

    assert_int_equal(torus_parse(&t, text, NULL), 0);
    launch(&f, &t, a);
    embark(&v, &f);
    for (uint32_t node = 0; node < t.nodes; node++)
        check_order(&f.plan[node]);
    for (uint32_t step = 0; step < f.plan[0].steps; step++) {
        for (uint32_t node = 0; node < t.nodes; node++)
            send_step(&v, &f, node, step);
        note_peaks(&v, &f);
    }
    check_arrived(&v, &f);
    disembark(&v, t.nodes);
    land(&f);
}

TEST(plans_of_ar)
{
    static const char *const tori[] = {"1", "2", "3",  "4",   "5",   "6",    "7",
                                       "8", "9", "14", "1x5", "6x1", "1x8x1"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++)
        check_plans(tori[i], algorithm_find("ar"));
}

TEST(plans_of_at2)
{
    static const char *const tori[] = {"1x1", "1x2", "2x1", "1x7",  "8x1",  "2x2",  "2x3",
                                       "3x2", "3x3", "4x4", "4x8",  "8x4",  "5x4",  "6x6",
                                       "7x5", "2x9", "8x8", "8x12", "10x6", "12x12"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        check_plans(tori[i], algorithm_find("at2"));
        check_plans(tori[i], algorithm_find("at2-printed"));
    }
}

/* One-port algorithms, on tori that need no padding and on padded ones. */
TEST(plans_of_one_port)
{
    static const struct {
        const char *algorithm, *torus;
    } cases[] = {{"ar1", "1"},
                 {"ar1", "2"},
                 {"ar1", "7"},
                 {"ar1", "1x12"},
                 {"at2-1port", "1x9"},
                 {"at2-1port", "2x3"},
                 {"at2-1port", "7x5"},
                 {"at2-1port", "8x8"},
                 {"pt", "2x2x2x2"},
                 {"pt", "3x2x4x2"},
                 {"pt", "12x8"},
                 {"mt", "3x4x5"},
                 {"mt", "6x6x6"},
                 {"mt", "2x3x3x2"},
                 {"mt", "4x4x4x4"},
                 {"dim-1port", "1x11"},
                 {"dim-1port", "5x3"},
                 {"dim-1port", "10x3m"},
                 {"lanes-1port", "6x10"},
                 {"lanes-1port", "6mx6"},
                 {"lanes-1port", "3x6x3"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_plans(cases[i].torus, algorithm_find(cases[i].algorithm));
}

TEST(plans_of_direct)
{
    static const char *const tori[] = {"1",   "2",     "2m",    "7",      "6m",     "2x2",
                                       "3x3", "4x4",   "4x4m",  "3mx4m",  "5x6",    "7x1",
                                       "8x8", "2x2x2", "3x4x5", "3mx2x4", "2x3x2x2"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++)
        check_plans(tori[i], algorithm_find("direct"));
}

TEST(plans_of_any_dimensions)
{
    static const char *const algorithms[] = {
        "a2",          "a3",       "cccube",  "cccube-q4", "atape",  "stream",   "tree",
        "pair",        "pair-s2",  "pair-s4", "dim",       "dim-s2", "dim-tree", "squares",
        "tseng-gupta", "suh-shin", "orders",  "halves",    "dim-k2", "dim-k3"};
    static const char *const tori[] = {"1",    "2",       "8",     "5m",    "4x4",   "4mx4m",
                                       "5x5",  "8x8",     "8mx8m", "2x8m",  "3x4x5", "2x4x2",
                                       "6x6m", "2x2x2x2", "16x4",  "4x16m", "16m",   "4mx4x4m"};

    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
        for (size_t j = i % one_in(2); j < sizeof tori / sizeof tori[0]; j += one_in(2)) {
            struct torus t;
            assert_int_equal(torus_parse(&t, tori[j], NULL), 0);
            if (algorithm_accepts(algorithm_find(algorithms[i]), &t, NULL) == 0)
                check_plans(tori[j], algorithm_find(algorithms[i]));
        }
    }
}

/* An algorithm that splits blocks into two halves: one goes along dimension 0 first, the other
 * along dimension 1. */
static bool takes_2d(const struct torus *t)
{
    return t->dims == 2;
}
static uint32_t two_legs(const struct torus *t)
{
    return t->dims;
}
static void period_of_1(const struct torus *t, uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++)
        period[i] = 1;
}
static uint32_t route_half(const struct torus *t, uint32_t s, uint32_t d, uint32_t segment,
                           struct leg *legs)
{
    uint32_t from[2], to[2], count = 0;
    torus_coordinates(t, s, from);
    torus_coordinates(t, d, to);
    for (unsigned i = 0; i < 2; i++) {
        unsigned dim = (segment + i) % 2;
        int direction = segment == 0 ? 1 : -1; /* at the exact opposite */
        uint32_t hops = torus_shortest(t, dim, from[dim], to[dim], &direction);
        if (hops > 0)
            legs[count++] = (struct leg){.step = t->size[1] == 1 ? 0 : i,
                                         .hops = (uint16_t)hops,
                                         .dim = (uint8_t)dim,
                                         .direction = (int8_t)direction};
    }
    return count;
}

TEST(plans_of_segments)
{
    static const struct algorithm halves = {.name = "halves",
                                            .segments = 2,
                                            .takes = takes_2d,
                                            .max_legs = two_legs,
                                            .period = period_of_1,
                                            .route = route_half};

    check_plans("1x1", &halves);
    check_plans("4x4", &halves);
    check_plans("5x6", &halves);
    check_plans("4x1", &halves); /* both halves in one message, except for the opposite node */
}

TEST(refusal_is_passed_on)
{
    struct torus t;
    struct plan p;
    struct error e = {.code = ERROR_NONE};
    uint32_t peak;

    assert_int_equal(torus_parse(&t, "4x4", NULL), 0);
    assert_fails(plan_build(&p, &t, algorithm_find("ar"), 0, &e), e, ERROR_REFUSED, "");
    assert_int_equal(plan_peak_transit(&t, algorithm_find("ar"), &peak, &e), -1);
    assert_fails(plan_build(&p, &t, algorithm_find("at2"), 16, &e), e, ERROR_USAGE, "");
}
