/* The passages of all nodes of a torus together: the nodes at both ends of a channel agree, and every segment follows
 * its route from end to end. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/file/imported.h"
#include "daemon/lib/schedule/passages.h"
#include "tests/support/cmocka.h"

struct all {
    struct torus t;
    const struct algorithm *a;
    uint32_t source; /* TORUS_NO_NODE, or the only one whose blocks there are */
    struct passages *node;
    const char *dims;
};

#define FAIL(all, ...)                                                                             \
    do {                                                                                           \
        print_error("%s on %s: ", (all)->a->name, (all)->dims);                                    \
        fail_msg(__VA_ARGS__);                                                                     \
    } while (0)

static bool open_all(struct all *all, const char *dims, const struct algorithm *a, uint32_t source)
{
    struct error e;

    *all = (struct all){.a = a, .source = source, .dims = dims};
    assert_int_equal(torus_parse(&all->t, dims, NULL), 0);
    if (algorithm_accepts(a, &all->t, NULL) != 0)
        return false;
    all->node = calloc(all->t.nodes, sizeof *all->node);
    assert_non_null(all->node);
    for (uint32_t rank = 0; rank < all->t.nodes; rank++)
        if (passages_build(&all->node[rank], &all->t, a, rank, source, &e) != 0)
            FAIL(all, "node %u: %s", rank, e.text);
    return true;
}

static void close_all(struct all *all)
{
    for (uint32_t rank = 0; rank < all->t.nodes; rank++)
        passages_free(&all->node[rank]);
    free(all->node);
}

/* Segments that leave at a port arrive at the neighbour's port in the same order. */
static void check_channel(const struct all *all, uint32_t rank, unsigned port)
{
    uint32_t peer = torus_neighbour(&all->t, rank, port);
    const struct passages *here = &all->node[rank];
    uint32_t departures = 0;

    if (peer == TORUS_NO_NODE) {
        assert_int_equal(here->departures[port], 0);
        assert_int_equal(here->arrivals[port], 0);
        return;
    }
    const struct passages *there = &all->node[peer];
    unsigned opposite = torus_port_opposite(&all->t, port);
    assert_int_equal(here->departures[port], there->arrivals[opposite]);
    for (uint32_t i = 0; i < here->count; i++) {
        const struct passage *x = &here->passage[i];
        if (x->out != port)
            continue;
        departures++;
        assert_in_range(x->place, 0, here->departures[port] - 1);
        const struct passage *y = &there->passage[there->arrival[opposite][x->place]];
        bool through = all->a->operation == OPERATION_EXCHANGE;
        if (x->source != y->source || x->destination != y->destination ||
            x->segment != y->segment || x->hop + 1 != y->hop ||
            (through && x->ahead != y->ahead + 1) || y->in != opposite)
            FAIL(all,
                 "node %u sends segment %u of %u->%u as piece %u, and node %u takes it for %u of "
                 "%u->%u",
                 rank, x->segment, x->source, x->destination, x->place, peer, y->segment, y->source,
                 y->destination);
    }
    assert_int_equal(departures, here->departures[port]);
}

/* Follows every segment from channel to channel, and counts its passages. */
static uint64_t walk(const struct all *all, const struct passages *from, uint32_t index)
{
    const struct passage *first = &from->passage[index], *x = first;
    struct leg leg[64];
    uint32_t here = from->rank, legs, hop = 0, passed = 1;

    assert_int_equal(first->source, from->rank);
    assert_true(algorithm_max_legs(all->a, &all->t) <= 64);
    legs = algorithm_route(all->a, &all->t, first->source, first->destination, first->segment, leg);
    for (uint32_t i = 0; i < legs; i++)
        for (uint16_t n = 0; n < leg[i].hops; n++, passed++) {
            unsigned port = torus_port(&all->t, leg[i].dim, leg[i].direction);
            if (x->out != port || x->hop != hop++)
                FAIL(all, "%u->%u, segment %u leaves its route at node %u", first->source,
                     first->destination, first->segment, here);
            here = torus_neighbour(&all->t, here, port);
            const struct passages *p = &all->node[here];
            x = &p->passage[p->arrival[torus_port_opposite(&all->t, port)][x->place]];
        }
    assert_int_equal(here, first->destination);
    assert_int_equal(x->out, PASSAGE_HERE);
    assert_int_equal(x->ahead, 0);
    return passed;
}

static void check_walks(const struct all *all)
{
    uint64_t passed = 0, counted = 0;

    for (uint32_t rank = 0; rank < all->t.nodes; rank++) {
        const struct passages *p = &all->node[rank];
        uint32_t own = 0;
        counted += p->count;
        for (uint32_t i = 0; i < p->count; i++) {
            if (p->passage[i].in != PASSAGE_HERE)
                continue;
            own++;
            passed += walk(all, p, i);
        }
        assert_int_equal(own, (all->t.nodes - 1) * all->a->segments);
    }
    /* Each passage was used by its own segment, exactly once. */
    assert_int_equal(passed, counted);
}

static bool joins(const struct passages *p, uint32_t index)
{
    return p->joins != NULL && p->joins[index];
}

/* Segments that leave a node of a tree reach the nodes behind it, each once. Counts the passages. Returns the number of
 * channels to the farthest node. */
static uint32_t follow(const struct all *all, uint32_t node, uint32_t first, bool *reached,
                       uint64_t *passed)
{
    const struct passages *p = &all->node[node];
    const struct passage *x = &p->passage[first];
    uint32_t farthest = 0;

    assert_false(joins(p, first));
    if (x->out == PASSAGE_HERE) {
        assert_false(reached[node]);
        assert_int_equal(x->destination, node);
        reached[node] = true;
    }
    for (uint32_t i = first; i == first || (i < p->count && joins(p, i)); i++) {
        const struct passage *y = &p->passage[i];
        ++*passed;
        assert_int_equal(y->source, x->source);
        assert_int_equal(y->segment, x->segment);
        assert_int_equal(y->in, x->in);
        assert_int_equal(y->hop, x->hop);
        if (y->out == PASSAGE_HERE) {
            assert_int_equal(i, first);
            continue;
        }
        uint32_t next = torus_neighbour(&all->t, node, y->out);
        uint32_t there = all->node[next].arrival[torus_port_opposite(&all->t, y->out)][y->place];
        uint32_t beyond = 1 + follow(all, next, there, reached, passed);
        assert_int_equal(y->ahead, beyond);
        farthest = beyond > farthest ? beyond : farthest;
    }
    return farthest;
}

/* Every source's segments come to every other node, and not back to the source. */
static void check_trees(const struct all *all)
{
    uint64_t passed = 0, counted = 0;
    bool *reached = calloc(all->t.nodes, sizeof *reached);

    assert_non_null(reached);
    for (uint32_t rank = 0; rank < all->t.nodes; rank++) {
        const struct passages *p = &all->node[rank];
        bool sends = all->source == TORUS_NO_NODE || all->source == rank;
        uint32_t segments = 0;
        counted += p->count;
        for (uint32_t i = 0; i < p->count; i++) {
            assert_int_equal(p->passage[i].in == PASSAGE_HERE, i < p->own);
            if (p->passage[i].in != PASSAGE_HERE || joins(p, i))
                continue;
            assert_int_equal(p->passage[i].source, rank);
            assert_int_equal(p->passage[i].segment, segments++);
            for (uint32_t node = 0; node < all->t.nodes; node++)
                reached[node] = node == rank;
            (void)follow(all, rank, i, reached, &passed);
            for (uint32_t node = 0; node < all->t.nodes; node++)
                if (!reached[node])
                    FAIL(all, "node %u does not get segment %u of node %u", node,
                         p->passage[i].segment, rank);
        }
        assert_int_equal(segments, sends && all->t.nodes > 1 ? all->a->segments : 0);
    }
    assert_int_equal(passed, counted);
    free(reached);
}

/* Passages of a node through which blocks pass; a passage to several ports counts once. */
static uint32_t count_transit(const struct passages *p)
{
    uint32_t transit = 0;

    for (uint32_t i = 0; i < p->count; i++)
        if (p->passage[i].in != PASSAGE_HERE && p->passage[i].out != PASSAGE_HERE)
            transit += !joins(p, i) || !joins(p, i - 1);
    return transit;
}

static void check_transit(const struct all *all)
{
    uint32_t most = 0, said = 0, longest = 0;

    for (uint32_t rank = 0; rank < all->t.nodes; rank++) {
        const struct passages *p = &all->node[rank];
        uint32_t transit = count_transit(p);
        for (uint32_t i = 0; i < p->count; i++)
            if (p->passage[i].ahead > longest)
                longest = p->passage[i].ahead;
        assert_int_equal(p->transit, transit);
        if (transit > most)
            most = transit;
    }
    for (uint32_t rank = 0; rank < all->t.nodes; rank++)
        assert_int_equal(all->node[rank].most_ahead, longest);
    assert_int_equal(passages_most_transit(&all->t, all->a, all->source, &said, NULL), 0);
    assert_int_equal(said, most);
}

static void check_all(const struct all *all)
{
    for (uint32_t rank = 0; rank < all->t.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&all->t); port++)
            check_channel(all, rank, port);
    if (all->a->operation == OPERATION_ALLGATHER)
        check_trees(all);
    else
        check_walks(all);
    check_transit(all);
}

static void check(const char *dims, const struct algorithm *a, uint32_t source)
{
    struct all all;

    if (!open_all(&all, dims, a, source))
        return;
    check_all(&all);
    close_all(&all);
}

/* Rings of 2 and of 1, meshes, and sizes that some algorithms pad with imaginary nodes. */
static const char *const tori[] = {"1",   "2",   "2m",  "1x2", "2x2",   "1x6",     "5",
                                   "8",   "5m",  "3x5", "4x4", "3mx4",  "2mx3mx2", "5x7",
                                   "6x6", "4x8", "7x3", "8x8", "3x4x5", "2x2x2x2"};

TEST(nodes_agree_on_every_torus)
{
    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++)
        for (size_t k = 0; k < algorithm_count(); k++)
            check(tori[i], algorithm_at(k), TORUS_NO_NODE);
}

/* A broadcast: only segments of one source. */
TEST(nodes_agree_on_one_tree)
{
    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t;
        assert_int_equal(torus_parse(&t, tori[i], NULL), 0);
        for (size_t k = 0; k < algorithm_count(); k++)
            for (uint32_t source = 0; source < t.nodes; source += 1 + t.nodes / 3)
                if (algorithm_at(k)->operation == OPERATION_ALLGATHER)
                    check(tori[i], algorithm_at(k), source);
    }
}

/* A file may have legs of several hops in its trees: a block is twice on a channel, first for the
 * node there, then for one behind it, and back. */
TEST(trees_with_long_legs)
{
    static const char text[] =
        "{\"schedule\":1,\"dims\":\"5\",\"operation\":\"allgather\",\"period\":[1]}\n"
        "{\"src\":0,\"dst\":1,\"legs\":[[0,0,1,1]]}\n"
        "{\"src\":0,\"dst\":2,\"legs\":[[1,0,1,2]]}\n"
        "{\"src\":0,\"dst\":4,\"legs\":[[1,0,1,2],[2,0,1,2]]}\n"
        "{\"src\":0,\"dst\":3,\"legs\":[[1,0,1,2],[2,0,1,2],[3,0,-1,1]]}\n";
    struct imported *s;
    struct error e;
    struct all all;

    assert_success(imported_read(&s, text, strlen(text), NULL, NULL, &e), e);
    for (uint32_t source = 0; source <= 5; source++) {
        assert_true(
            open_all(&all, "5", imported_algorithm(s), source < 5 ? source : TORUS_NO_NODE));
        check_all(&all);
        close_all(&all);
    }
    imported_free(s);
}

/* The time on the channels that are left of a passage's route, by their rates. */
static double time_left(const struct all *all, const struct damage *d, uint32_t rank,
                        const struct passage *x)
{
    double time = 0;

    while (x->out != PASSAGE_HERE) {
        time += (double)DAMAGE_FULL_RATE / damage_rate(d, rank, x->out);
        rank = torus_neighbour(&all->t, rank, x->out);
        const struct passages *p = &all->node[rank];
        x = &p->passage[p->arrival[torus_port_opposite(&all->t, x->out)][x->place]];
    }
    return time;
}

static void check_order(const struct all *all, const struct damage *d, uint32_t rank, uint32_t i)
{
    const struct passages *p = &all->node[rank];
    const struct passage *x = &p->passage[i];
    const double time = time_left(all, d, rank, x);

    assert_in_range(x->ahead, 0, p->most_ahead);
    for (uint32_t j = 0; j < p->count; j++)
        if (time_left(all, d, rank, &p->passage[j]) > 1.1 * time)
            assert_true(p->passage[j].ahead > x->ahead);
}

/* A slow channel takes the time of many fast ones: what still has to pass it comes first. */
TEST(time_counts_if_rates_differ)
{
    struct torus t;
    struct damage damage;
    struct detour *detour;
    struct all all;
    struct error e;

    assert_int_equal(torus_parse(&t, "3x4", NULL), 0);
    assert_int_equal(damage_init(&damage, &t, NULL), 0);
    assert_success(damage_parse_rates(&damage, "4:-1=0.1,0:+0=0.5,7:+0=0.001", false, &e), e);
    assert_success(detour_new(&detour, &damage, &e), e);
    assert_true(open_all(&all, "3x4", detour_algorithm(detour), TORUS_NO_NODE));
    for (uint32_t rank = 0; rank < t.nodes; rank++)
        for (uint32_t i = 0; i < all.node[rank].count; i++)
            check_order(&all, &damage, rank, i);
    close_all(&all);
    detour_free(detour);
    damage_free(&damage);
}

/* Node 1 of a mesh of three has all kinds of passages:
 *
 *     0->1 0->2  ->  1  ->  0->2 1->2
 *     1->0 2->0  <-  1  <-  2->0 2->1 */
TEST(the_middle_of_a_mesh)
{
    enum { PLUS, MINUS };
    struct torus t;
    struct passages p;

    assert_int_equal(torus_parse(&t, "3m", NULL), 0);
    assert_int_equal(passages_build(&p, &t, algorithm_find("direct"), 1, TORUS_NO_NODE, NULL), 0);
    assert_int_equal(p.rank, 1);
    assert_int_equal(p.count, 6);
    assert_int_equal(p.most_ahead, 2);
    for (unsigned port = PLUS; port <= MINUS; port++) {
        assert_int_equal(p.departures[port], 2);
        assert_int_equal(p.arrivals[port], 2);
    }
    const struct passage *here = &p.passage[p.arrival[MINUS][0]];
    assert_int_equal(here->source, 0);
    assert_int_equal(here->destination, 1);
    assert_int_equal(here->out, PASSAGE_HERE);
    const struct passage *through = &p.passage[p.arrival[MINUS][1]];
    assert_int_equal(through->source, 0);
    assert_int_equal(through->destination, 2);
    assert_int_equal(through->hop, 1);
    assert_int_equal(through->ahead, 1);
    assert_int_equal(through->out, PLUS);
    assert_int_equal(through->place, 0);
    passages_free(&p);
}

/* On a torus every node sends to its neighbours first, and so on; otherwise all would begin with node 0.
 */
TEST(our_own_go_by_offset)
{
    struct torus t;
    struct passages p;

    assert_int_equal(torus_parse(&t, "4x5", NULL), 0);
    for (uint32_t rank = 0; rank < t.nodes; rank++) {
        uint32_t expected = 1 * 4; /* offset * segments + segment */
        assert_int_equal(
            passages_build(&p, &t, algorithm_find("stream"), rank, TORUS_NO_NODE, NULL), 0);
        for (uint32_t i = 0; i < p.count; i++) {
            const struct passage *x = &p.passage[i];
            if (x->in != PASSAGE_HERE)
                continue;
            uint32_t row = (x->destination / 5 + 4 - rank / 5) % 4;
            uint32_t column = (x->destination % 5 + 5 - rank % 5) % 5;
            assert_int_equal((row * 5 + column) * 4 + x->segment, expected++);
        }
        assert_int_equal(expected, t.nodes * 4);
        passages_free(&p);
    }
}

TEST(schedules_without_passages_are_refused)
{
    struct torus t;
    struct passages p;
    struct error e;

    assert_int_equal(torus_parse(&t, "3x5", NULL), 0);
    assert_fails(passages_build(&p, &t, algorithm_find("stream"), 15, TORUS_NO_NODE, &e), e,
                 ERROR_USAGE, "");
    assert_int_equal(torus_parse(&t, "3x3x3", NULL), 0);
    assert_fails(passages_build(&p, &t, algorithm_find("at2"), 0, TORUS_NO_NODE, &e), e,
                 ERROR_REFUSED, "");
}
