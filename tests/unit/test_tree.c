#include "daemon/lib/schedule/tree.h"
#include "tests/support/cmocka.h"

enum { MOST = 128 };

/* For every root: every node has a parent one hop nearer to the root, has as children exactly the nodes whose parent it
 * is, and so is reached exactly once. */
static void check_trees(const struct torus *t)
{
    assert_true(t->nodes <= MOST);
    for (uint32_t root = 0; root < t->nodes; root++) {
        struct tree_node node[MOST];
        uint32_t children = 0;

        for (uint32_t rank = 0; rank < t->nodes; rank++)
            tree_node(t, root, rank, &node[rank]);
        for (uint32_t rank = 0; rank < t->nodes; rank++) {
            const struct tree_node *n = &node[rank];

            if (rank == root) {
                assert_int_equal(n->parent, -1);
            } else {
                assert_in_range(n->parent, 0, torus_ports(t) - 1);
                uint32_t parent = torus_neighbour(t, rank, (unsigned)n->parent);
                assert_true(parent != TORUS_NO_NODE);
                assert_int_equal(torus_distance(t, root, parent) + 1,
                                 torus_distance(t, root, rank));
            }
            assert_in_range(n->children, 0, torus_ports(t));
            for (unsigned i = 0; i < n->children; i++) {
                uint32_t child = torus_neighbour(t, rank, n->child[i]);
                assert_true(child != TORUS_NO_NODE);
                assert_int_equal(node[child].parent, torus_port_opposite(t, n->child[i]));
                assert_true(i == 0 || n->child[i] > n->child[i - 1]);
            }
            children += n->children;
        }
        assert_int_equal(children, t->nodes - 1);
    }
}

TEST(every_root_reaches_every_node)
{
    static const char *const shapes[] = {
        "1",   "2",   "2m",   "3",     "8",     "7m",    "1x1",           "2x2",
        "4x4", "5x7", "4x8m", "3mx4m", "2x1x3", "3x4x5", "2x2x2x2x2x2x2", "2mx3x2x3m"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t;
        assert_int_equal(torus_parse(&t, shapes[i], NULL), 0);
        check_trees(&t);
    }
}

/* The path from the root is the dimension-ordered one. */
TEST(shape_on_4x4)
{
    struct torus t;
    struct tree_node n;

    assert_int_equal(torus_parse(&t, "4x4", NULL), 0);
    tree_node(&t, 0, 0, &n);
    assert_int_equal(n.children, 4);
    tree_node(&t, 0, 4, &n); /* one row on: still in the root's column, spreads its row */
    assert_int_equal(n.parent, torus_port(&t, 0, -1));
    assert_int_equal(n.children, 3); /* +0 to the opposite row, +1, -1 */
    tree_node(&t, 0, 5, &n);
    assert_int_equal(n.parent, torus_port(&t, 1, -1));
    assert_int_equal(n.children, 1); /* +1 to the opposite column */
    assert_int_equal(n.child[0], torus_port(&t, 1, 1));
    tree_node(&t, 0, 7, &n);
    assert_int_equal(n.parent, torus_port(&t, 1, 1));
    assert_int_equal(n.children, 0);
}
