/* yangwang against the "Broadcast Pattern" of Yang and Wang: All-to-All Communication, written out
 * independently: the functions U, I and mod2, cases 1 to 3, and the additional check. In every
 * source's tree each node must have the parent that the paper gives it, in the same phase. The
 * algorithm must refuse tori on which the paper's rule delivers blocks twice.
 *
 * Readings: x is horizontal, along a row; y is vertical, along a column. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

struct point {
    int x, y; /* relative to the source, in the direction from which the block came */
};

static int U(int x)
{
    return x > 0;
}

static int I(int x)
{
    return x > 0 ? 1 : -1;
}

static int mod2(int x)
{
    return ((x % 2) + 2) % 2;
}

/* The neighbours to which the node at p sends; x0 = y0 = 0. Returns how many. */
static unsigned printed_children(struct point p, struct point *to)
{
    int x = p.x, y = p.y;

    if (x == 0 && y == 0) { /* case 1 */
        to[0] = (struct point){x, y + 1};
        to[1] = (struct point){x, y - 1};
        to[2] = (struct point){x + 1, y};
        to[3] = (struct point){x - 1, y};
        return 4;
    }
    if (x == 0) { /* case 2.1 */
        to[0] = (struct point){x + mod2(y + U(I(y))), y + I(y) * mod2(y + 1 - U(I(y)))};
        to[1] = (struct point){x - mod2(y + U(-I(y))), y + I(y) * mod2(y + 1 - U(-I(y)))};
        return 2;
    }
    if (y == 0) { /* case 2.2 */
        to[0] = (struct point){x + I(x) * mod2(x + U(I(x))), y + mod2(x + 1 - U(I(x)))};
        to[1] = (struct point){x + I(x) * mod2(x + U(-I(x))), y - mod2(x + 1 - U(-I(x)))};
        return 2;
    }
    to[0] = (struct point){x + I(x) * mod2(x + y + U(I(x) * I(y))),
                           y + I(y) * mod2(x + y + 1 - U(I(x) * I(y)))}; /* case 3 */
    return 1;
}

/* The pattern from one source. */
struct pattern {
    const struct torus *torus; /* two dimensions */
    uint32_t source;
    uint32_t *parent, *phase; /* by node; TORUS_NO_NODE if the block does not reach it */
    uint32_t twice;           /* nodes that the block reaches again */
    uint64_t *load;           /* node * 4 + port: blocks of all sources so far */
};

static int along(const struct torus *t, unsigned dim, int offset)
{
    int n = (int)t->size[dim];
    int away = abs(offset) % n;
    if (!t->wrap[dim])
        return abs(offset);
    return n - away < away ? n - away : away;
}

/* dist() from the source */
static int distance(const struct torus *t, struct point p)
{
    return along(t, 1, p.x) + along(t, 0, p.y);
}

/* The rank of the node, or TORUS_NO_NODE beyond the edge of a mesh. */
static uint32_t node_at(const struct pattern *p, struct point at)
{
    const struct torus *t = p->torus;
    int r = (int)t->size[0], c = (int)t->size[1];
    int x = (int)p->source % c + at.x, y = (int)p->source / c + at.y;

    if ((!t->wrap[1] && (x < 0 || x >= c)) || (!t->wrap[0] && (y < 0 || y >= r)))
        return TORUS_NO_NODE;
    return (uint32_t)((y + r) % r * c + (x + c) % c);
}

static unsigned port_between(struct point from, struct point to)
{
    static const struct torus plane = {.dims = 2};

    return torus_port(&plane, from.x != to.x ? 1 : 0, from.x < to.x || from.y < to.y ? 1 : -1);
}

static void flood(struct pattern *p)
{
    const struct torus *t = p->torus;
    struct point *queue = calloc(t->nodes, sizeof *queue);
    uint32_t head = 0, tail = 1; /* queue[0] is the source */

    assert_non_null(queue);
    for (uint32_t i = 0; i < t->nodes; i++)
        p->parent[i] = p->phase[i] = TORUS_NO_NODE;
    p->parent[p->source] = p->source;
    p->phase[p->source] = 0;
    p->twice = 0;
    for (; head < tail; head++) {
        struct point at = queue[head], to[4];
        uint32_t node = node_at(p, at);
        unsigned count = printed_children(at, to);

        for (unsigned i = 0; i < count; i++) {
            uint32_t child = node_at(p, to[i]);
            if (child == TORUS_NO_NODE) /* "trimmed at the boundary of the mesh" */
                continue;
            if (distance(t, at) >= distance(t, to[i])) /* "additional check" */
                continue;
            p->load[(size_t)node * 4 + port_between(at, to[i])]++;
            if (p->parent[child] != TORUS_NO_NODE) {
                p->twice++;
                continue;
            }
            p->parent[child] = node;
            p->phase[child] = p->phase[node] + 1;
            queue[tail++] = to[i];
        }
    }
    free(queue);
}

static struct pattern make_pattern(const struct torus *t)
{
    struct pattern p = {.torus = t};

    p.parent = calloc(t->nodes, sizeof *p.parent);
    p.phase = calloc(t->nodes, sizeof *p.phase);
    p.load = calloc((size_t)t->nodes * 4, sizeof *p.load);
    assert_true(p.parent && p.phase && p.load);
    return p;
}

static void free_pattern(struct pattern *p)
{
    free(p->parent);
    free(p->phase);
    free(p->load);
}

static uint64_t busiest(const struct pattern *p)
{
    uint64_t most = 0;
    for (size_t i = 0; i < (size_t)p->torus->nodes * 4; i++)
        most = p->load[i] > most ? p->load[i] : most;
    return most;
}

/* Checks the last leg of every node's route against its parent. All routes of a source form its
 * tree (test_allgather.c). */
static void check_tree(const struct pattern *p, struct leg *legs)
{
    const struct torus *t = p->torus;
    const struct algorithm *a = algorithm_find("yangwang");

    for (uint32_t node = 0; node < t->nodes; node++) {
        if (node == p->source)
            continue;
        uint32_t count = algorithm_route(a, t, p->source, node, 0, legs);
        const struct leg *last = &legs[count - 1];
        assert_int_equal(last->step + 1, p->phase[node]);
        assert_int_equal(last->hops, 1);
        assert_int_equal(torus_walk(t, node, last->dim, -last->direction, 1), p->parent[node]);
    }
}

/* Returns the blocks on the busiest channel. */
static uint64_t check_pattern(const struct torus *t)
{
    struct pattern p = make_pattern(t);
    struct leg *legs = calloc(torus_diameter(t) + 1, sizeof *legs);

    assert_non_null(legs);
    assert_int_equal(algorithm_accepts(algorithm_find("yangwang"), t, NULL), 0);
    for (p.source = 0; p.source < t->nodes; p.source++) {
        flood(&p);
        assert_int_equal(p.twice, 0); /* theorem 2 */
        check_tree(&p, legs);
    }
    uint64_t most = busiest(&p);
    assert_int_equal(contract_verify(t, "yangwang").busiest, most);
    free_pattern(&p);
    free(legs);
    return most;
}

static struct torus shape(uint32_t rows, uint32_t columns, unsigned wraps)
{
    struct torus t = contract_rectangle(rows, columns);
    t.wrap[0] = wraps & 1;
    t.wrap[1] = wraps >> 1;
    return t;
}

static bool is_right(const struct torus *t)
{
    return !(t->wrap[0] && t->size[0] % 2 == 0) && !(t->wrap[1] && t->size[1] % 2 == 0);
}

TEST(parents_are_the_papers)
{
    for (uint32_t rows = 1; rows <= 11; rows++) {
        for (uint32_t columns = 1; columns <= 11; columns++) {
            for (unsigned wraps = 0; wraps < 4; wraps++) {
                struct torus t = shape(rows, columns, wraps);
                if (is_right(&t))
                    (void)check_pattern(&t);
            }
        }
    }
}

/* Corollaries 1 and 2. On a torus every channel carries the same number of blocks, in every
 * phase. */
TEST(corollaries)
{
    for (uint32_t n = 3; n <= 15; n += 2) {
        struct torus t = shape(n, n, 3);
        struct schedule_report r = contract_verify(&t, "yangwang");
        assert_int_equal(check_pattern(&t), (n * n - 1) / 4); /* times the channels: all
                                                               * deliveries */
        assert_int_equal(r.transmission, (n * n - 1) / 4);
        assert_int_equal(r.startups, torus_diameter(&t));
        assert_true(r.minimal);
    }
    for (uint32_t n = 2; n <= 10; n++) {
        struct torus t = shape(n, n, 0);
        assert_int_equal(check_pattern(&t), n * n / 2);
    }
}

/* A node that is halfway round receives the block from both sides. */
TEST(even_tori_are_refused)
{
    static const struct {
        uint32_t n, twice;
        uint64_t busiest;
    } squares[] = {{4, 5, 5}, {6, 7, 11}, {8, 9, 18}};

    for (size_t i = 0; i < sizeof squares / sizeof squares[0]; i++) {
        struct torus t = shape(squares[i].n, squares[i].n, 3);
        struct pattern p = make_pattern(&t);
        for (p.source = 0; p.source < t.nodes; p.source++) {
            flood(&p);
            assert_int_equal(p.twice, squares[i].twice);
        }
        assert_int_equal(busiest(&p), squares[i].busiest);
        assert_true((double)busiest(&p) > torus_bound_broadcast(&t));
        free_pattern(&p);
    }
    for (uint32_t rows = 1; rows <= 9; rows++) {
        for (uint32_t columns = 1; columns <= 9; columns++) {
            for (unsigned wraps = 0; wraps < 4; wraps++) {
                struct torus t = shape(rows, columns, wraps);
                struct pattern p = make_pattern(&t);
                struct error e;
                flood(&p);
                assert_int_equal(p.twice > 0, !is_right(&t));
                assert_int_equal(algorithm_accepts(algorithm_find("yangwang"), &t, &e),
                                 is_right(&t) ? 0 : -1);
                if (!is_right(&t))
                    assert_int_equal(e.code, ERROR_REFUSED);
                free_pattern(&p);
            }
        }
    }
}

/* The number of nodes with the same parent in the trees of both algorithms. */
static uint32_t common_parents(const struct torus *t)
{
    uint32_t common = 0;

    for (uint32_t node = 1; node < t->nodes; node++) {
        struct leg a[32], b[32];
        uint32_t count = algorithm_route(algorithm_find("yangwang"), t, 0, node, 0, a);
        (void)algorithm_route(algorithm_find("balanced"), t, 0, node, 0, b);
        common += a[count - 1].dim == b[count - 1].dim &&
                  a[count - 1].direction == b[count - 1].direction;
    }
    return common;
}

TEST(balanced_is_another_algorithm)
{
    struct torus five = shape(5, 5, 3), seven = shape(7, 7, 3), nine = shape(9, 9, 3);

    assert_int_equal(common_parents(&five), 16);
    assert_int_equal(common_parents(&seven), 32);
    assert_int_equal(common_parents(&nine), 48);
}
