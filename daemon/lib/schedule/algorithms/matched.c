#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/registry.h"

/* All-to-all broadcast on tori and meshes of three or more dimensions, over shortest paths, that loads
 * the busiest channel as little as shortest paths allow. client/doc/open-questions.md states and
 * proves that, and has the figures. Yang and Wang's pattern (yangwang.c) exceeds that load if sizes differ or are
 * even; `balanced` (allgather.c) has a formula for up to two dimensions.
 *
 * As in `balanced`, the rule says by which of its links a node receives a block: from some neighbour that
 * is nearer to the source. Whichever neighbour that is, every node receives every block once, over a shortest path. So
 * only the loads matter, and each node can choose by itself. All nodes choose by one table.
 *
 * A cell is a source as a node sees it: one number for each dimension, 0 where both have the same coordinate. On
 * a ring it is the offset from the source to the node. On a line it is the number of the source if all other
 * coordinates are sorted by their distance from the node: 1, 2, ... A gate is a side of a ring's dimension, or a line's
 * dimension with both sides. The table has the gate for each cell. A node at the end of a line receives all
 * blocks of that line's gate by one link; any other node shares them between two links.
 *
 * The table is filled outwards. A cell goes to the gate with the fewest cells of the same distance, then
 * with the fewest in all. Gates that then have too many pass cells on to others, along chains
 * of gates, which exist as long as some gate has too many: the theorem is that of Hall. */

enum { GATES = 2 * TORUS_MAX_DIMS };

struct cell {
    uint32_t number, distance;
    uint16_t gates; /* that it may go to, a bit each */
};

struct table {
    struct torus torus;
    struct table *next;
    uint8_t gate[]; /* by cell */
};

/* The list only grows at its beginning, and is read without a lock. */
static struct table *_Atomic tables;

/* ---- Cells --------------------------------------------------------------------------------------- */

static unsigned gate_of(unsigned dim, bool negative)
{
    return 2 * dim + negative;
}

static uint32_t cell_on_line(uint32_t size, uint32_t node, uint32_t source)
{
    uint32_t both = node < size - 1 - node ? node : size - 1 - node; /* as far on both sides */
    uint32_t hops = node < source ? source - node : node - source;

    return hops <= both ? 2 * hops - (source < node) : hops + both;
}

static uint32_t cell_of(const struct torus *t, const uint32_t *node, const uint32_t *source)
{
    uint32_t at[TORUS_MAX_DIMS];

    for (unsigned i = 0; i < t->dims; i++)
        at[i] = t->wrap[i] ? (node[i] + t->size[i] - source[i]) % t->size[i]
                           : cell_on_line(t->size[i], node[i], source[i]);
    return torus_rank(t, at);
}

static struct cell make_cell(const struct torus *t, uint32_t number)
{
    struct cell c = {.number = number};
    uint32_t at[TORUS_MAX_DIMS];

    torus_coordinates(t, number, at);
    for (unsigned i = 0; i < t->dims; i++) {
        uint32_t forth = at[i], back = t->size[i] - forth;
        if (forth == 0)
            continue;
        c.distance += t->wrap[i] && back < forth ? back : forth;
        if (!t->wrap[i] || forth <= back)
            c.gates |= (uint16_t)(1u << gate_of(i, false));
        if (t->wrap[i] && back <= forth)
            c.gates |= (uint16_t)(1u << gate_of(i, true));
    }
    return c;
}

static int compare_cells(const void *a, const void *b)
{
    const struct cell *x = a, *y = b;
    int few = __builtin_popcount(x->gates) - __builtin_popcount(y->gates);

    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return few != 0 ? few : (x->number > y->number) - (x->number < y->number);
}

/* ---- The table ----------------------------------------------------------------------------------- */

/* The least load: for any set of dimensions, a node in the corner of its lines receives the blocks of
 * the nodes with which it shares the other coordinates, by the gates of that set. */
static uint32_t least_load(const struct torus *t)
{
    uint32_t load = 0;

    for (unsigned set = 1; set < 1u << t->dims; set++) {
        uint32_t nodes = 1, gates = 0;
        for (unsigned i = 0; i < t->dims; i++)
            if ((set >> i & 1) != 0 && t->size[i] > 1) {
                nodes *= t->size[i];
                gates += t->wrap[i] ? 2 : 1;
            }
        uint32_t share = gates > 0 ? (nodes - 1 + gates - 1) / gates : 0;
        load = share > load ? share : load;
    }
    return load;
}

/* What is known while a table is filled. */
struct filling {
    struct table *table;
    struct cell *cell; /* outwards, without that of the node itself */
    uint32_t cells, most;
    uint32_t load[GATES];
};

static void choose_gates(struct filling *f)
{
    uint32_t same[GATES] = {0}; /* of the same distance */

    for (uint32_t i = 0; i < f->cells; i++) {
        const struct cell *c = &f->cell[i];
        unsigned best = GATES;
        if (i > 0 && f->cell[i - 1].distance != c->distance)
            memset(same, 0, sizeof same);
        for (unsigned k = 0; k < GATES; k++) {
            unsigned gate = (k + i) % GATES;
            if ((c->gates >> gate & 1) != 0 &&
                (best == GATES || same[gate] < same[best] ||
                 (same[gate] == same[best] && f->load[gate] < f->load[best])))
                best = gate;
        }
        f->table->gate[c->number] = (uint8_t)best;
        same[best]++;
        f->load[best]++;
    }
}

/* A chain of gates, each of which can pass cells on to the next one. */
struct chain {
    unsigned gate[GATES], length;
    uint32_t cells; /* how many all of them can pass on */
};

/* Finds the shortest chain from a gate that has too many cells to one that has room. */
static struct chain find_chain(const struct filling *f, unsigned from)
{
    uint32_t movable[GATES][GATES] = {{0}};
    unsigned before[GATES], queue[GATES], head = 0, tail = 1, to = from;
    struct chain c = {.cells = f->load[from] - f->most};

    for (uint32_t i = 0; i < f->cells; i++)
        for (unsigned gate = 0; gate < GATES; gate++)
            movable[f->table->gate[f->cell[i].number]][gate] += f->cell[i].gates >> gate & 1;
    for (unsigned gate = 0; gate < GATES; gate++)
        before[gate] = GATES;
    before[from] = queue[0] = from;
    while (head < tail && f->load[to = queue[head++]] >= f->most)
        for (unsigned gate = 0; gate < GATES; gate++)
            if (before[gate] == GATES && movable[to][gate] > 0) {
                before[gate] = to;
                queue[tail++] = gate;
            }
    assert(f->load[to] < f->most);
    c.cells = f->most - f->load[to] < c.cells ? f->most - f->load[to] : c.cells;
    for (unsigned gate = to; gate != from; gate = before[gate]) {
        c.gate[c.length++] = gate;
        c.cells = movable[before[gate]][gate] < c.cells ? movable[before[gate]][gate] : c.cells;
    }
    c.gate[c.length] = from;
    return c;
}

/* Moves the farthest cells that may move. */
static void move_cells(struct filling *f, unsigned from, unsigned to, uint32_t cells)
{
    for (uint32_t i = f->cells; cells > 0; i--) {
        const struct cell *c = &f->cell[i - 1];
        if (f->table->gate[c->number] != from || (c->gates >> to & 1) == 0)
            continue;
        f->table->gate[c->number] = (uint8_t)to;
        f->load[from]--;
        f->load[to]++;
        cells--;
    }
}

static void relieve(struct filling *f, unsigned gate)
{
    while (f->load[gate] > f->most) {
        const struct chain c = find_chain(f, gate);
        for (unsigned i = 0; i < c.length; i++) /* from its end, so that no gate gains */
            move_cells(f, c.gate[i + 1], c.gate[i], c.cells);
    }
}

static struct table *make_table(const struct torus *t)
{
    struct table *table = calloc(1, sizeof *table + t->nodes);
    struct filling f = {.table = table, .cells = t->nodes - 1, .most = least_load(t)};

    f.cell = calloc(t->nodes, sizeof *f.cell);
    if (table == NULL || f.cell == NULL) {
        free(table);
        free(f.cell);
        return NULL;
    }
    table->torus = *t;
    for (uint32_t i = 0; i < f.cells; i++)
        f.cell[i] = make_cell(t, i + 1);
    qsort(f.cell, f.cells, sizeof *f.cell, compare_cells);
    choose_gates(&f);
    for (unsigned gate = 0; gate < GATES; gate++)
        relieve(&f, gate);
    free(f.cell);
    return table;
}

static const struct table *find(const struct table *table, const struct torus *t)
{
    while (table != NULL && !torus_equal(&table->torus, t))
        table = table->next;
    return table;
}

/* The table of a torus, which is kept until the process ends; NULL without memory. */
static const struct table *table_of(const struct torus *t)
{
    struct table *first = atomic_load(&tables), *made;
    const struct table *found = find(first, t);

    if (found != NULL || (made = make_table(t)) == NULL)
        return found;
    do { /* another thread may have made the same table */
        if ((found = find(first, t)) != NULL) {
            free(made);
            return found;
        }
        made->next = first;
    } while (!atomic_compare_exchange_weak(&tables, &first, made));
    return made;
}

/* ---- The algorithm ------------------------------------------------------------------------------- */

static bool matched_takes(const struct torus *t)
{
    unsigned dims = 0;

    for (unsigned i = 0; i < t->dims; i++)
        dims += t->size[i] > 1;
    return dims > 2 && table_of(t) != NULL;
}

/* Finds the route backwards: from the destination, always to the neighbour that it receives the
 * block from. */
static uint32_t matched_route(const struct torus *t, uint32_t source, uint32_t destination,
                              uint32_t segment, struct leg *legs)
{
    const struct table *table = table_of(t);
    uint32_t from[TORUS_MAX_DIMS], at[TORUS_MAX_DIMS];
    uint32_t count = torus_distance(t, source, destination);

    (void)segment;
    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, at);
    for (uint32_t step = count; step-- > 0;) {
        unsigned gate = table->gate[cell_of(t, at, from)], dim = gate / 2;
        bool negative = t->wrap[dim] ? gate % 2 != 0 : at[dim] < from[dim];

        legs[step] = (struct leg){
            .step = step, .hops = 1, .dim = (uint8_t)dim, .direction = (int8_t)(negative ? -1 : 1)};
        at[dim] = (at[dim] + (negative ? 1 : t->size[dim] - 1)) % t->size[dim];
    }
    return count;
}

const struct algorithm algorithm_matched = {
    .name = "matched",
    .summary =
        "flooding in three and more dimensions in which a node's links share the blocks evenly, "
        "by a table",
    .accepts_text = "tori and meshes of three or more dimensions of more than one node ('balanced' "
                    "takes fewer)",
    .startups = "the diameter",
    .transmission =
        "on any channel in all: ceil((N-1)/d), as few as shortest paths allow (a ring of "
        "2 beside long lines: more)",
    .source = "this project; after Yang and Wang's broadcast pattern (yangwang)",
    .operation = OPERATION_ALLGATHER,
    .port_model = PORT_MODEL_ALL,
    .only_by_name = true,
    .segments = 1,
    .takes = matched_takes,
    .max_legs = torus_diameter,
    .period = torus_full_period,
    .route = matched_route,
};
