/* The trees of reductions. The trees of all nodes together are, for each owner and segment, the
 * routes of the allgather in reverse, with each channel once, and both ends of a channel have the
 * same order. */
#include <math.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/product.h"
#include "daemon/lib/schedule/reduction.h"
#include "tests/support/cmocka.h"
#include "tests/support/long_legs.h"

static const char *const shapes[] = {
    "1",     "2",   "2m",   "3",    "8",     "9m",    "1x5",   "1x6m",   "2x2",      "2x2m",
    "2mx2m", "2x5", "2x6m", "2mx7", "3x3",   "4x4",   "4mx4",  "4x5m",   "4mx4m",    "5x7",
    "5mx7m", "3x8", "8x8",  "1x1",  "5x1x3", "2x2x2", "2x3x4", "3x3x3m", "2mx3mx4m", "2x2x2x2",
};
enum { SHAPES = sizeof shapes / sizeof shapes[0], NODES_MOST = 81 };

static struct reduction_trees all[NODES_MOST];

/* The trees of each node, by node. */
static void close_all(const struct torus *t)
{
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        reduction_free(&all[rank]);
}

/* --- properties of trees --- */

static uint32_t count_trees(const struct torus *t, const struct reduction_trees *p)
{
    return (p->single ? 1 : t->nodes) * p->segments;
}

/* Checks that both ends of the channel to the parent agree on it. */
static void check_edge(const struct torus *t, uint32_t rank, uint32_t index)
{
    const struct reduction_trees *p = &all[rank];
    const struct reduction_tree *tree = &p->tree[index];
    uint32_t parent = torus_neighbour(t, rank, tree->parent);
    unsigned port = torus_port_opposite(t, tree->parent);

    assert_true(parent < t->nodes);
    const struct reduction_trees *q = &all[parent];
    assert_true(tree->place < p->departures[tree->parent]);
    assert_int_equal(p->departures[tree->parent], q->arrivals[port]);
    assert_int_equal(p->departure[tree->parent][tree->place], index);
    const struct reduction_child *child = &q->child[q->arrival[port][tree->place]];
    assert_int_equal(child->tree, index);
    assert_int_equal(child->port, port);
    assert_int_equal(child->place, tree->place);
    assert_in_range(q->arrival[port][tree->place], q->tree[index].first,
                    q->tree[index].first + q->tree[index].children - 1);
    assert_int_equal(q->tree[index].distance + 1, tree->distance);
    assert_int_equal(p->arrivals[tree->parent] + tree->place, reduction_down_out(q, child));
    assert_true(p->arrivals[tree->parent] + tree->place >= q->departures[port]);
}

/* Checks that every tree has an edge from each node except the owner; each edge leads one hop
 * nearer to the owner, so the tree spans the torus. */
static void check_trees(const struct torus *t)
{
    uint64_t edges = 0;
    uint32_t deepest = 0, trees = count_trees(t, &all[0]);

    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        const struct reduction_trees *p = &all[rank];
        assert_int_equal(p->rank, rank);
        assert_int_equal(p->count, trees);
        assert_int_equal(p->most_distance, all[0].most_distance);
        assert_int_equal(p->most_children, all[0].most_children);
        assert_true(!p->single || p->edges <= p->most_children);
        edges += p->edges;
        uint32_t first = 0;
        for (uint32_t i = 0; i < p->count; i++) {
            const struct reduction_tree *tree = &p->tree[i];
            assert_int_equal(tree->segment, i % p->segments);
            assert_int_equal(tree->first, first);
            first += tree->children;
            for (uint32_t c = 1; c < tree->children; c++)
                assert_true(p->child[tree->first + c - 1].port < p->child[tree->first + c].port);
            if (!p->single)
                assert_int_equal(tree->owner, i / p->segments);
            assert_int_equal(tree->owner, all[0].tree[i].owner);
            assert_int_equal(tree->owner == rank, tree->parent == REDUCTION_NO_PORT);
            assert_int_equal(tree->owner == rank, tree->distance == 0);
            deepest = tree->distance > deepest ? tree->distance : deepest;
            if (tree->owner != rank)
                check_edge(t, rank, i);
        }
        assert_int_equal(first, p->edges);
    }
    assert_int_equal(edges, (uint64_t)trees * (t->nodes - 1));
    assert_int_equal(deepest, all[0].most_distance);
}

/* Checks that a node sends by the port through which it receives in the allgather. */
static void check_routes(const struct torus *t, const struct algorithm *a)
{
    struct leg *legs = calloc((size_t)algorithm_max_legs(a, t) + 1, sizeof *legs);

    assert_non_null(legs);
    for (uint32_t owner = 0; owner < t->nodes; owner++)
        for (uint32_t node = 0; node < t->nodes; node++)
            for (uint32_t segment = 0; segment < a->segments && node != owner; segment++) {
                uint32_t count = algorithm_route(a, t, owner, node, segment, legs), hops = 0;
                const struct leg *last = &legs[count - 1];
                const struct reduction_tree *tree = &all[node].tree[owner * a->segments + segment];
                for (uint32_t i = 0; i < count; i++)
                    hops += legs[i].hops;
                assert_int_equal(tree->parent, torus_port(t, last->dim, -last->direction));
                assert_int_equal(tree->distance, hops);
            }
    free(legs);
}

static void check_algorithm(const struct torus *t, const struct algorithm *a)
{
    assert_in_range(t->nodes, 1, NODES_MOST);
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        assert_int_equal(reduction_build(&all[rank], t, a, rank, NULL), 0);
    check_trees(t);
    check_routes(t, a);
    close_all(t);
}

TEST(trees_are_the_allgathers_backwards)
{
    unsigned checked = 0;

    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);
        for (unsigned s = 0; s < SHAPES && a->operation == OPERATION_ALLGATHER; s++) {
            struct torus t;
            assert_int_equal(torus_parse(&t, shapes[s], NULL), 0);
            if (algorithm_accepts(a, &t, NULL) == 0) {
                check_algorithm(&t, a);
                checked++;
            }
        }
    }
    assert_true(checked > 2 * SHAPES);
}

TEST(balanced_ones_load_no_channel_above_the_bound)
{
    static const char *const tori[] = {"8", "9m", "4x4", "5x7", "8x8", "4x5m", "5mx7m", "3x8"};
    const struct algorithm *a = algorithm_find("balanced");

    for (unsigned s = 0; s < sizeof tori / sizeof tori[0]; s++) {
        struct reduction_trees p;
        struct torus t;
        assert_int_equal(torus_parse(&t, tori[s], NULL), 0);
        for (uint32_t rank = 0; rank < t.nodes; rank++) {
            assert_int_equal(reduction_build(&p, &t, a, rank, NULL), 0);
            for (unsigned port = 0; port < torus_ports(&t); port++)
                assert_true(p.departures[port] <= torus_bound_broadcast(&t));
            reduction_free(&p);
        }
    }
}

/* Checks that the node with the fewest links has N-1 blocks on them, and no channel has more than
 * the bound, plus `more` pieces. */
static void check_evenness(const struct torus *t, uint32_t more)
{
    const struct algorithm *a = even_algorithm(t);
    char text[TORUS_TEXT_SIZE];
    uint64_t most = 0;

    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        struct reduction_trees p;
        assert_int_equal(reduction_build(&p, t, a, rank, NULL), 0);
        for (unsigned port = 0; port < torus_ports(t); port++)
            most = p.departures[port] > most ? p.departures[port] : most;
        reduction_free(&p);
    }
    if ((most - more) * torus_fewest_links(t) != (uint64_t)(t->nodes - 1) * a->segments)
        fail_msg("%s: %u pieces on a channel, in %u segments", torus_format(t, text),
                 (unsigned)most, a->segments);
}

TEST(segments_load_channels_evenly)
{
    static const char *const meshes[] = {"9m", "2mx2m", "4mx4m", "5mx7m"};
    static const char *const cubes[] = {"2x2x2", "3x3x3", "4x4x4", "2x2x2x2", "3x1x3x3"};
    struct torus t;

    for (uint32_t rows = 1; rows <= 9; rows++)
        for (uint32_t columns = 1; columns <= 9; columns++) {
            t = (struct torus){
                .dims = 2, .size = {rows, columns}, .wrap = {true, true}, .nodes = rows * columns};
            bool mixed = rows > 1 && columns > 1 && rows % 2 != columns % 2;
            check_evenness(&t, mixed);
        }
    for (unsigned i = 0; i < sizeof cubes / sizeof cubes[0]; i++) {
        assert_int_equal(torus_parse(&t, cubes[i], NULL), 0);
        check_evenness(&t, 0);
    }
    for (unsigned i = 0; i < sizeof meshes / sizeof meshes[0]; i++) { /* the corners of meshes */
        assert_int_equal(torus_parse(&t, meshes[i], NULL), 0);
        check_evenness(&t, 0);
    }
    for (unsigned s = 0; s < SHAPES; s++) {
        assert_int_equal(torus_parse(&t, shapes[s], NULL), 0);
        check_algorithm(&t, even_algorithm(&t));
    }
}

/* --- with one owner --- */

/* Counts in `times` whose contributions a node passes on in a tree, by the definition of a
 * reduction. Its parent asks each node once. */
static void combine(const struct torus *t, uint32_t rank, uint32_t index, uint32_t *times)
{
    const struct reduction_trees *p = &all[rank];
    const struct reduction_tree *tree = &p->tree[index];

    times[rank]++;
    for (uint32_t i = tree->first; i < tree->first + tree->children; i++)
        combine(t, torus_neighbour(t, rank, p->child[i].port), index, times);
}

static void check_all_are_combined_once(const struct torus *t, uint32_t root)
{
    for (uint32_t index = 0; index < all[root].count; index++) {
        uint32_t times[NODES_MOST] = {0};
        combine(t, root, index, times);
        for (uint32_t rank = 0; rank < t->nodes; rank++)
            assert_int_equal(times[rank], 1);
    }
}

/* Checks that the messages of the tree of one segment are those by which a broadcast from the root
 * reaches the nodes, in reverse. */
static void check_rooted(const struct torus *t, const struct algorithm *a, uint32_t root)
{
    struct leg *legs = calloc((size_t)algorithm_max_legs(a, t) + 1, sizeof *legs);
    uint32_t most = 0;

    assert_non_null(legs);
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        assert_int_equal(reduction_build_rooted(&all[rank], t, a, root, rank, NULL), 0);
        assert_true(all[rank].single);
        assert_int_equal(all[rank].count, a->segments);
        most = all[rank].edges > most ? all[rank].edges : most;
    }
    check_trees(t);
    check_all_are_combined_once(t, root);
    assert_int_equal(all[0].most_children, most);
    for (uint32_t node = 0; node < t->nodes; node++)
        for (uint32_t segment = 0; segment < a->segments && node != root; segment++) {
            uint32_t count = algorithm_route(a, t, root, node, segment, legs), hops = 0;
            const struct reduction_tree *tree = &all[node].tree[segment];
            for (uint32_t i = 0; i < count; i++)
                hops += legs[i].hops;
            assert_int_equal(tree->owner, root);
            assert_int_equal(tree->parent,
                             torus_port(t, legs[count - 1].dim, -legs[count - 1].direction));
            assert_int_equal(tree->distance, hops);
        }
    free(legs);
    close_all(t);
}

TEST(rooted_trees_are_the_broadcasts_backwards)
{
    unsigned checked = 0;

    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);
        for (unsigned s = 0; s < SHAPES && a->operation == OPERATION_ALLGATHER; s++) {
            struct torus t;
            assert_int_equal(torus_parse(&t, shapes[s], NULL), 0);
            if (algorithm_accepts(a, &t, NULL) != 0)
                continue;
            for (uint32_t root = 0; root < t.nodes; root += 1 + t.nodes / 7) {
                check_rooted(&t, a, root);
                checked++;
            }
        }
    }
    assert_true(checked > 8 * SHAPES);
}

/* With disjoint trees, no channel carries more of the vector than torus_bound_reduce() on tori with
 * as many trees as a node has links, and no two trees use the same channel on any torus. */
TEST(disjoint_trees_meet_the_bound)
{
    static const char *const tori[] = {"8",     "9m",  "4x4",   "5x7",     "8x8",
                                       "4mx4m", "3x8", "2x3x4", "2mx3mx4m"};
    const struct algorithm *a = algorithm_find("disjoint");

    for (unsigned s = 0; s < sizeof tori / sizeof tori[0]; s++) {
        struct torus t;
        assert_int_equal(torus_parse(&t, tori[s], NULL), 0);
        for (uint32_t root = 0; root < t.nodes; root += 1 + t.nodes / 7) {
            uint32_t most = 0;
            for (uint32_t rank = 0; rank < t.nodes; rank++) {
                assert_int_equal(reduction_build_rooted(&all[rank], &t, a, root, rank, NULL), 0);
                for (unsigned port = 0; port < torus_ports(&t); port++)
                    most = all[rank].departures[port] > most ? all[rank].departures[port] : most;
            }
            if (fabs((double)most / a->segments - torus_bound_reduce(&t)) > 1e-12)
                fail_msg("%s, root %u: %u of %u parts on a channel", tori[s], root, most,
                         a->segments);
            close_all(&t);
        }
    }
}

TEST(one_owner_has_a_tree_of_least_depth)
{
    for (unsigned s = 0; s < SHAPES; s++) {
        struct torus t;
        assert_int_equal(torus_parse(&t, shapes[s], NULL), 0);
        for (uint32_t root = 0; root < t.nodes; root += 1 + t.nodes / 7) {
            uint32_t furthest = 0;
            for (uint32_t rank = 0; rank < t.nodes; rank++) {
                uint32_t distance = torus_distance(&t, rank, root);
                assert_int_equal(reduction_build_single(&all[rank], &t, root, rank, NULL), 0);
                assert_true(all[rank].single);
                assert_int_equal(all[rank].tree[0].owner, root);
                assert_int_equal(all[rank].tree[0].distance, distance);
                furthest = distance > furthest ? distance : furthest;
            }
            assert_int_equal(all[0].most_distance, furthest);
            check_trees(&t);
            close_all(&t);
        }
    }
}

TEST(a_good_root_is_in_the_middle)
{
    for (unsigned s = 0; s < SHAPES; s++) {
        struct torus t;
        uint32_t least = UINT32_MAX, of_root = 0;
        assert_int_equal(torus_parse(&t, shapes[s], NULL), 0);
        for (uint32_t root = 0; root < t.nodes; root++) {
            uint32_t furthest = 0;
            for (uint32_t rank = 0; rank < t.nodes; rank++) {
                uint32_t distance = torus_distance(&t, rank, root);
                furthest = distance > furthest ? distance : furthest;
            }
            least = furthest < least ? furthest : least;
            of_root = root == reduction_root(&t) ? furthest : of_root;
        }
        assert_int_equal(of_root, least);
    }
}

/* The bounds, computed from single links. */
TEST(bounds_follow_from_the_links)
{
    for (unsigned s = 0; s < SHAPES; s++) {
        struct torus t;
        uint32_t channels = 0, fewest = UINT32_MAX;
        assert_int_equal(torus_parse(&t, shapes[s], NULL), 0);
        for (uint32_t rank = 0; rank < t.nodes; rank++) {
            uint32_t links = 0;
            for (unsigned port = 0; port < torus_ports(&t); port++)
                links += torus_neighbour(&t, rank, port) != TORUS_NO_NODE;
            channels += links;
            fewest = links < fewest ? links : fewest;
        }
        double reduce = 0, reduce_scatter = 0, allreduce = 0;
        if (t.nodes > 1) {
            reduce = 1.0 / fewest;
            reduce_scatter = (t.nodes - 1.0) / t.nodes / fewest;
            allreduce = 2.0 * (t.nodes - 1) / channels;
            allreduce = allreduce > 1.0 / fewest ? allreduce : 1.0 / fewest;
        }
        assert_true(fabs(torus_bound_reduce(&t) - reduce) < 1e-12);
        assert_true(fabs(torus_bound_reduce_scatter(&t) - reduce_scatter) < 1e-12);
        assert_true(fabs(torus_bound_allreduce(&t) - allreduce) < 1e-12);
    }
}

/* --- algorithms that are not in the registry --- */

/* Routes that reach nodes with odd ranks by another way than the nodes behind them. */
static uint32_t tangled(const struct torus *t, uint32_t source, uint32_t destination,
                        uint32_t segment, struct leg *legs)
{
    return long_legs(t, source, destination, destination, legs);
}

static struct algorithm made(uint32_t (*route)(const struct torus *, uint32_t, uint32_t, uint32_t,
                                               struct leg *),
                             uint32_t segments)
{
    return (struct algorithm){.name = "made",
                              .operation = OPERATION_ALLGATHER,
                              .segments = segments,
                              .max_legs = one_leg_a_dimension,
                              .period = torus_full_period,
                              .route = route};
}

TEST(segments_have_trees_of_their_own)
{
    const struct algorithm a = made(long_legs, 3);

    for (unsigned s = 0; s < SHAPES; s++) {
        struct torus t;
        assert_int_equal(torus_parse(&t, shapes[s], NULL), 0);
        check_algorithm(&t, &a);
    }
}

static void refused(const char *dims, const struct algorithm *a, uint32_t rank,
                    enum error_code code)
{
    struct reduction_trees p;
    struct torus t;
    struct error e;

    assert_int_equal(torus_parse(&t, dims, NULL), 0);
    assert_fails(reduction_build(&p, &t, a, rank, &e), e, code, "");
    assert_null(p.tree);
}

TEST(what_is_not_a_tree_is_refused)
{
    const struct algorithm a = made(tangled, 1);
    struct reduction_trees p;
    struct torus t;
    struct error e;

    refused("4x4", &a, 3, ERROR_USAGE);                    /* routes that are not a tree */
    refused("4x4", algorithm_find("at2"), 3, ERROR_USAGE); /* for exchanges */
    refused("4x4", algorithm_find("balanced"), 16, ERROR_USAGE);
    refused("2x2x2", algorithm_find("balanced"), 0, ERROR_REFUSED);
    assert_int_equal(torus_parse(&t, "4x4", NULL), 0);
    assert_fails(reduction_build_rooted(&p, &t, algorithm_find("balanced"), 16, 3, &e), e,
                 ERROR_USAGE, "");
    assert_fails(reduction_build_rooted(&p, &t, &a, 1, 3, &e), e, ERROR_USAGE, "");
    assert_null(p.tree);
    assert_fails(reduction_build_single(&p, &t, 0, 16, &e), e, ERROR_USAGE, "");
    assert_fails(reduction_build_single(&p, &t, 17, 0, &e), e, ERROR_USAGE, "");
}
