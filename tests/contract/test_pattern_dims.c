/* yangwang in more than two dimensions, by enumeration. The rule is written out independently: as
 * words of letters, and from the source outwards. A node passes a block on to the neighbours one hop
 * farther away that receive the block from this node. Every node must receive every block once, over
 * a shortest path, as in torusd's routes; and on n^k tori, n odd, no channel may carry more than
 * ceil((n^k-1)/2k) blocks. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

enum { MOST_DIMS = 8, MOST_ENTRIES = 2 * MOST_DIMS };

/* A place relative to a source, the last dimension first. */
struct at {
    int dims;
    int x[MOST_DIMS];
};

/* ---- The rule -------------------------------------------------------------------------------- */

/* The word that the entries from `start` on make: a sign for each, then a value for each. */
static void spell(const struct at *at, int start, unsigned char *word)
{
    int k = at->dims;

    for (int i = 0; i < 2 * k; i++) {
        int j = (start + i) % (2 * k), value = j < k ? at->x[j] : -at->x[j - k];
        word[i] = value > 0 ? 'p' : value < 0 ? 'a' : 'h';
        word[2 * k + i] = (unsigned char)(128 + value);
    }
}

/* Turns a place by one entry: its last coordinate comes first, with the other sign. */
static struct at turn(const struct at *at)
{
    struct at to = {.dims = at->dims};

    for (int i = 1; i < at->dims; i++)
        to.x[i] = at->x[i - 1];
    to.x[0] = -at->x[at->dims - 1];
    return to;
}

/* How many turns lead back to the place. */
static int turns_back(const struct at *at)
{
    struct at to = turn(at);
    int turns = 1;

    for (; memcmp(to.x, at->x, sizeof to.x) != 0; turns++)
        to = turn(&to);
    return turns;
}

/* The entry by which the place receives the block: i for dimension i forwards, k + i backwards.
 * `reach` is the largest coordinate. */
static int receives_by(const struct at *at, int reach)
{
    int k = at->dims, entries = 2 * k, list[MOST_ENTRIES], count = 0, best = -1, distance = 0;
    unsigned char word[4 * MOST_DIMS], best_word[4 * MOST_DIMS] = {0};

    for (int i = 0; i < entries; i++) {
        if ((i < k ? at->x[i] : -at->x[i - k]) <= 0)
            continue;
        spell(at, i, word);
        if (memcmp(word, best_word, (size_t)(4 * k)) > 0) {
            memcpy(best_word, word, sizeof word);
            best = count;
        }
        distance += abs(at->x[i % k]);
        list[count++] = i;
    }
    int back = turns_back(at);
    if (back == entries)
        return list[(best + distance - 1) % count];
    int a = best_word[entries] - 128, b = back == 4 ? best_word[entries + 1] - 128 : 0;
    int number = back == 4 ? (a - 1) * (reach + 1) + b : a - 1;
    assert_true(b >= 0 && (back == 2 || back == 4));
    return list[best] + number % (entries / back) * back;
}

/* ---- Flooding -------------------------------------------------------------------------------- */

struct flood {
    const struct torus *torus;
    uint32_t dim[MOST_DIMS]; /* of more than one node, the last one first */
    int dims, reach;
    uint32_t *from;  /* by node: which node the block of this source came from */
    uint32_t *phase; /* by node */
    uint64_t *load;  /* node * ports + port: blocks of all sources so far */
};

static struct at locate(const struct flood *f, uint32_t source, uint32_t node)
{
    const struct torus *t = f->torus;
    uint32_t a[TORUS_MAX_DIMS], b[TORUS_MAX_DIMS];
    struct at at = {.dims = f->dims};

    torus_coordinates(t, source, a);
    torus_coordinates(t, node, b);
    for (int i = 0; i < f->dims; i++) {
        int n = (int)t->size[f->dim[i]];
        at.x[i] = (int)b[f->dim[i]] - (int)a[f->dim[i]];
        if (t->wrap[f->dim[i]] && abs(at.x[i]) > n / 2)
            at.x[i] += at.x[i] > 0 ? -n : n;
    }
    return at;
}

/* Whether a node receives the block by this port of the neighbour. */
static bool takes(const struct flood *f, uint32_t source, uint32_t node, unsigned dim,
                  int direction)
{
    struct at at = locate(f, source, node);
    int by = receives_by(&at, f->reach);

    return f->dim[by % f->dims] == dim && (by < f->dims ? 1 : -1) == direction;
}

/* Floods the block of one source; returns how many nodes it reached. */
static uint32_t flood(struct flood *f, uint32_t source)
{
    const struct torus *t = f->torus;
    uint32_t *queue = calloc(t->nodes, sizeof *queue), head = 0, tail = 1;

    assert_non_null(queue);
    for (uint32_t i = 0; i < t->nodes; i++)
        f->from[i] = TORUS_NO_NODE;
    f->from[source] = source;
    f->phase[source] = 0;
    queue[0] = source;
    for (; head < tail; head++) {
        for (unsigned port = 0; port < torus_ports(t); port++) {
            unsigned dim = torus_port_dim(t, port);
            int direction = torus_port_direction(t, port);
            uint32_t next = torus_neighbour(t, queue[head], port);
            if (next == TORUS_NO_NODE ||
                torus_distance(t, source, next) <= torus_distance(t, source, queue[head]) ||
                !takes(f, source, next, dim, direction))
                continue;
            assert_int_equal(f->from[next], TORUS_NO_NODE); /* once */
            f->from[next] = queue[head];
            f->phase[next] = f->phase[queue[head]] + 1;
            f->load[(size_t)queue[head] * torus_ports(t) + port]++;
            queue[tail++] = next;
        }
    }
    free(queue);
    return tail;
}

/* torusd's route to a node ends with the hop by which the flood reaches it. */
static void check_route(const struct flood *f, uint32_t source, uint32_t node, struct leg *legs)
{
    const struct torus *t = f->torus;
    uint32_t count = algorithm_route(algorithm_find("yangwang"), t, source, node, 0, legs);
    const struct leg *last = &legs[count - 1];

    assert_int_equal(count, torus_distance(t, source, node));
    assert_int_equal(count, f->phase[node]);
    assert_int_equal(last->step + 1, count);
    assert_int_equal(torus_walk(t, node, last->dim, -last->direction, 1), f->from[node]);
}

static struct flood make_flood(const struct torus *t)
{
    struct flood f = {.torus = t};

    for (unsigned i = t->dims; i-- > 0;) {
        int farthest = (int)(t->wrap[i] ? t->size[i] / 2 : t->size[i] - 1);
        if (t->size[i] > 1)
            f.dim[f.dims++] = i;
        f.reach = farthest > f.reach ? farthest : f.reach;
    }
    f.from = calloc(t->nodes, sizeof *f.from);
    f.phase = calloc(t->nodes, sizeof *f.phase);
    f.load = calloc((size_t)t->nodes * torus_ports(t), sizeof *f.load);
    assert_true(f.from && f.phase && f.load);
    return f;
}

/* Checks a torus from all sources; returns the blocks on the busiest channel. */
static uint64_t check(const char *dims)
{
    struct torus t = contract_torus(dims);
    struct flood f = make_flood(&t);
    struct leg *legs = calloc(torus_diameter(&t) + 1, sizeof *legs);
    uint64_t most = 0;

    assert_non_null(legs);
    for (uint32_t source = 0; source < t.nodes; source++) {
        assert_int_equal(flood(&f, source), t.nodes);
        for (uint32_t node = 0; node < t.nodes; node++)
            if (node != source)
                check_route(&f, source, node, legs);
    }
    for (size_t i = 0; i < (size_t)t.nodes * torus_ports(&t); i++)
        most = f.load[i] > most ? f.load[i] : most;
    struct schedule_report r = contract_verify(&t, "yangwang");
    assert_int_equal(r.busiest, most);
    assert_int_equal(r.startups, torus_diameter(&t));
    assert_int_equal(r.contended_steps, 0);
    assert_true(r.minimal);
    free(f.from);
    free(f.phase);
    free(f.load);
    free(legs);
    return most;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* Equal odd sizes: the bound. The routes of larger tori are torusd's only. */
TEST(equal_tori_attain_the_bound)
{
    static const struct {
        const char *dims;
        uint64_t bound; /* ceil((n^k-1)/2k) */
    } tori[] = {{"3", 1},      {"9", 4},      {"3x3", 2},      {"9x9", 20},    {"3x3x3", 5},
                {"5x5x5", 21}, {"7x7x7", 57}, {"3x3x3x3", 10}, {"3x1x3x3", 5}, {"3x3x3x3x3", 25}};
    static const struct {
        const char *dims;
        uint64_t bound;
    } large[] = {{"9x9x9", 122},          {"5x5x5x5", 78},       {"5x5x5x5x5", 313},
                 {"3x3x3x3x3x3", 61},     {"5x5x5x5x5x5", 1302}, {"3x3x3x3x3x3x3", 157},
                 {"3x3x3x3x3x3x3x3", 410}};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i].dims);
        assert_int_equal(check(tori[i].dims), tori[i].bound);
        assert_true(torus_bound_broadcast(&t) == (double)tori[i].bound);
    }
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        struct torus t = contract_torus(large[i].dims);
        assert_int_equal(contract_verify(&t, "yangwang").busiest, large[i].bound);
        assert_true(torus_bound_broadcast(&t) == (double)large[i].bound);
    }
}

/* If k is a power of two, all channels carry the same number of blocks in every phase, so that the
 * transmission with a barrier after each step is the bound. For k = 3 a phase with the places (a, -a,
 * a) and (-a, a, -a) costs one block more. */
TEST(transmission)
{
    static const struct {
        const char *dims;
        uint64_t blocks;
    } known[] = {{"5x5", 6},       {"3x3x3x3", 10},   {"5x5x5x5", 78},  {"3x3x3x3x3x3x3x3", 410},
                 {"3x3x3", 4 + 1}, {"5x5x5", 20 + 2}, {"7x7x7", 56 + 3}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct torus t = contract_torus(known[i].dims);
        assert_int_equal(contract_verify(&t, "yangwang").transmission, known[i].blocks);
    }
}

/* Sizes that differ, meshes, and both: single delivery. How far the busiest channel is above the bound. */
TEST(other_sizes)
{
    static const struct {
        const char *dims;
        uint64_t busiest;
        double bound;
    } known[] = {{"3x5x7", 21, 18},      {"2mx2mx2m", 4, 3},   {"3mx3mx3m", 10, 9},
                 {"4mx4mx4m", 22, 21},   {"5mx5mx5m", 43, 42}, {"2mx2mx2mx2m", 7, 4},
                 {"3mx3mx3mx3m", 24, 20}};
    static const char *const others[] = {"3x5x4m", "2mx3mx4m", "3mx3x2mx3", "2mx1x5x3"};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct torus t = contract_torus(known[i].dims);
        assert_int_equal(check(known[i].dims), known[i].busiest);
        assert_true(torus_bound_broadcast(&t) == known[i].bound);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        (void)check(others[i]);
}

/* The proof's premise: a turn moves the chosen entry along, unless fewer than 2k turns lead back. */
TEST(the_rule_turns)
{
    for (int k = 2; k <= 4; k++) {
        for (int number = 1; number < 625; number++) {
            struct at at = {.dims = k};
            int rest = number, far = 0;
            for (int i = 0; i < k; i++, rest /= 5) {
                at.x[i] = rest % 5 - 2;
                far += abs(at.x[i]);
            }
            if (far == 0 || rest > 0 || turns_back(&at) < 2 * k)
                continue;
            struct at to = turn(&at);
            assert_int_equal(receives_by(&to, 2), (receives_by(&at, 2) + 1) % (2 * k));
        }
    }
}

TEST(refusals)
{
    static const char *const refused[] = {"3x3x4", "2x2x2", "3x4x5m", "3x3x3x3x2"};

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        contract_refused("yangwang", refused[i]);
}
