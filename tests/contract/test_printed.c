/* mt against sections 3 and 5.2 of Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for
 * All-to-All Personalized Communication on Multidimensional Tori, written out independently: on
 * tori of three dimensions every block must be in the combined message in which the paper sends it.
 * And the exchange on lines of k nodes, for which the paper only gives the cost.
 *
 * Readings: those of run_ar1() (printed.h). The nodes of a logical ring are numbered by a third of
 * their coordinates. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/algorithms/rings.h"
#include "tests/contract/contract.h"
#include "tests/contract/printed.h"
#include "tests/support/cmocka.h"

/* Two steps of phase 2, as printed_trees for x. */
static void run_line(struct block *b, unsigned dim, uint32_t step)
{
    static const int first[3] = {1, 1, -2}, second[3] = {2, -1, -1}; /* index: x mod 3 */
    int at = b->at[dim] % 3, to = b->to[dim] % 3;

    if (at + first[at] == to)
        send(b, step, dim, first[at]);
    else if (at + second[at] == to)
        send(b, step + 1, dim, second[at]);
    assert_int_equal(b->at[dim], b->to[dim]);
}

static uint32_t ring_startups(int p)
{
    return p == 2 ? 1 : (uint32_t)((p + 3) / 4 + 1);
}

/* Section 5.2. */
static struct block printed_trees(const struct torus *t, uint32_t source, uint32_t destination)
{
    static const unsigned axis[3][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}}; /* by group, by step */
    struct block b = {.legs = 0};
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], ring = 0;

    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < 3; i++) {
        b.size[i] = (int)t->size[i];
        b.at[i] = (int)from[i];
        b.to[i] = (int)to[i];
        if (ring_startups(b.size[i] / 3) > ring)
            ring = ring_startups(b.size[i] / 3);
    }
    int group = (b.at[0] + b.at[1] + b.at[2]) % 3;
    for (uint32_t round = 0; round < 3; round++)
        run_ar1(&b, axis[group][round], 3, round * ring, (round + 1) * ring - 1);
    for (unsigned i = 0; i < 3; i++)
        run_line(&b, i, 3 * ring + 2 * i);
    return b;
}

static void check_same(const struct block *b, const struct leg *legs, uint32_t count)
{
    assert_int_equal(b->legs, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(b->leg[i].step, legs[i].step);
        assert_int_equal(b->leg[i].dim, legs[i].dim);
        assert_int_equal(b->leg[i].hops, legs[i].hops);
        assert_int_equal(b->leg[i].direction, legs[i].direction);
    }
}

TEST(mt_is_section_5_2)
{
    static const char *const tori[] = {"6x6x6", "12x6x6", "6x18x6", "12x12x12", "24x6x12"};
    const struct algorithm *a = algorithm_find("mt");

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i]);
        for (uint32_t s = 0; s<t.nodes; s += t.nodes> 500 ? 11 : 1) { /* all groups */
            for (uint32_t d = 0; d < t.nodes; d++) {
                struct leg legs[MOST_LEGS];
                struct block b = printed_trees(&t, s, d);
                if (s != d)
                    check_same(&b, legs, algorithm_route(a, &t, s, d, 0, legs));
            }
        }
    }
}

TEST(ar1_is_figure_2)
{
    const struct algorithm *a = algorithm_find("ar1");

    for (uint32_t p = 4; p <= 40; p += 2) {
        struct torus t = contract_rectangle(1, p);
        for (int s = 0; s < (int)p; s++) {
            for (int d = 0; d < (int)p; d++) {
                struct leg legs[MOST_LEGS];
                struct block b = {.size = {1, (int)p, 1}, .at = {0, s, 0}, .to = {0, d, 0}};
                if (s == d)
                    continue;
                run_ar1(&b, 1, 1, 0, (p + 3) / 4);
                check_same(&b, legs, algorithm_route(a, &t, (uint32_t)s, (uint32_t)d, 0, legs));
            }
        }
    }
}

/* ---- Lines of k nodes ------------------------------------------------------------------------ */

enum { LONGEST_LINE = 10 };

/* One step on a line: blocks by channel (from node i up, from node i + 1 down), and for each node
 * where its message goes and from where it receives one (counted from 1; 0: none). */
struct step {
    uint32_t blocks[LONGEST_LINE][2];
    int owner[LONGEST_LINE][2]; /* the node whose message uses the channel */
    int to[LONGEST_LINE], from[LONGEST_LINE];
};

static void note_leg(struct step *step, int k, int at, const struct leg *leg)
{
    int end = at + leg->direction * leg->hops;

    assert_in_range(end, 0, k - 1);
    assert_true(step->to[at] == 0 || step->to[at] == end + 1);      /* one message is sent, */
    assert_true(step->from[end] == 0 || step->from[end] == at + 1); /* and one received */
    step->to[at] = end + 1;
    step->from[end] = at + 1;
    for (int x = at; x != end; x += leg->direction) {
        int low = leg->direction > 0 ? x : x - 1, down = leg->direction < 0;
        assert_true(step->owner[low][down] == 0 || step->owner[low][down] == at + 1);
        step->owner[low][down] = at + 1;
        step->blocks[low][down]++;
    }
}

/* k-1 startups, floor(k^2/4) blocks, one port, no two messages on a channel. */
TEST(lines_cost_what_the_paper_says)
{
    for (int k = 2; k <= LONGEST_LINE; k++) {
        struct step steps[LONGEST_LINE];
        uint64_t transmission = 0;

        memset(steps, 0, sizeof steps);
        for (int from = 0; from < k; from++) {
            for (int to = 0; to < k; to++) {
                struct leg legs[LONGEST_LINE];
                uint32_t count =
                    line_one_port_route((uint32_t)k, 3, 5, (uint32_t)from, (uint32_t)to, legs);
                int at = from;
                assert_in_range(count, from != to, line_one_port_legs((uint32_t)k));
                for (uint32_t i = 0; i < count; i++) {
                    assert_int_equal(legs[i].dim, 3);
                    assert_in_range(legs[i].step, 5, 5 + k - 2);
                    assert_true(i == 0 || legs[i].step > legs[i - 1].step);
                    note_leg(&steps[legs[i].step - 5], k, at, &legs[i]);
                    at += legs[i].direction * legs[i].hops;
                }
                assert_int_equal(at, to);
            }
        }
        assert_int_equal(line_one_port_steps((uint32_t)k), k - 1);
        for (int i = 0; i < k - 1; i++) {
            uint32_t most = 0;
            for (int x = 0; x < k; x++) {
                assert_int_not_equal(steps[i].to[x], 0); /* every node sends in every step */
                for (int down = 0; down < 2; down++)
                    if (steps[i].blocks[x][down] > most)
                        most = steps[i].blocks[x][down];
            }
            transmission += most;
        }
        assert_int_equal(transmission, k * k / 4);
    }
}

/* mt as a whole, in as many dimensions as can be enumerated. */
TEST(no_contention_and_one_port)
{
    static const char *const tori[] = {"4x4",       "8x12",    "6x6x6", "12x6x18",        "8x8x8x8",
                                       "2x2x2x2x2", "4x4x4x4", "20",    "2x2x2x2x2x2x2x2"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i]);
        struct schedule_report r = contract_verify(&t, "mt");
        assert_int_equal(r.contended_steps, 0);
        assert_true(r.one_port_kept);
    }
}

/* yangwang against the "Broadcast Pattern" of Yang and Wang: All-to-All Communication, written out
 * independently: the functions U, I and mod2, cases 1 to 3, and the additional check. In every
 * source's tree each node must have the parent that the paper gives it, in the same phase. The
 * algorithm must refuse tori on which the paper's rule delivers blocks twice.
 *
 * Readings: x is horizontal, along a row; y is vertical, along a column. */

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
