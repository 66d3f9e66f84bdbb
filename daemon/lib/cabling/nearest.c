#include "daemon/lib/cabling/nearest.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/cabling/moves.h"
#include "daemon/lib/cabling/network.h"
#include "daemon/lib/cabling/placement.h"

/* The networks that nearly fit the cables, by number of links and by how many links each node has. */

struct shape {
    struct torus torus;
    uint32_t fewest_moves; /* at least this many are needed */
};

struct shapes {
    struct shape *
        shape; /* in the order in which they are preferred: those with only rings and lines first, then those
                          * with more rings, with fewer dimensions, and nearer to a square */
    uint32_t shapes;
};

#define SHAPES_MOST 512u

/* Kinds of factors, in the order in which they are tried. */
enum { KIND_RING, KIND_LINE, KIND_COMPLETE, KIND_STAR, KINDS };

struct listing {
    struct shapes *shapes;
    const struct network *seen;
    uint32_t hosts, moves;
};

static int falling(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x > y ? -1 : x < y;
}

static uint32_t difference(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

static uint32_t node_links(const struct torus *t, uint32_t rank)
{
    uint32_t links = 0;

    for (unsigned port = 0; port < torus_ports(t); port++)
        links += torus_neighbour(t, rank, port) != TORUS_NO_NODE;
    return links;
}

/* Returns the fewest moves that can turn the cables into a network; UINT32_MAX without memory. A move changes the
 * number of links of at most two nodes by one, and the number of all links by at most one. A missing host takes its own
 * links away, and one from each neighbour. */
static uint32_t shapes_fewest_moves(const struct torus *t, const struct network *seen,
                                    uint32_t hosts)
{
    uint32_t nodes = t->nodes > seen->nodes ? t->nodes : seen->nodes;
    uint32_t *want = calloc((size_t)nodes + 1, sizeof *want);
    uint32_t *have = calloc((size_t)nodes + 1, sizeof *have);
    uint32_t unlike = 0, missing = t->nodes > hosts ? t->nodes - hosts : 0, spared;

    if (want == NULL || have == NULL) {
        free(want);
        free(have);
        return UINT32_MAX;
    }
    for (uint32_t i = 0; i < t->nodes; i++)
        want[i] = node_links(t, i);
    for (uint32_t i = 0; i < seen->nodes; i++)
        have[i] = seen->degree[i];
    qsort(want, nodes, sizeof *want, falling);
    qsort(have, nodes, sizeof *have, falling);
    for (uint32_t i = 0; i < nodes; i++)
        unlike += difference(want[i], have[i]);
    spared = missing * 2 * want[0];
    free(want);
    free(have);
    return missing + (unlike > spared ? (unlike - spared + 1) / 2 : 0);
}

/* Whether the number of links alone rules a network out. */
static bool links_fit(const struct listing *l, const struct torus *t)
{
    uint64_t links = torus_links(t), seen = l->seen->links;
    uint64_t spared = t->nodes > l->hosts ? torus_ports(t) : 0;

    return links <= seen + l->moves + spared && seen <= links + l->moves;
}

static void consider(struct listing *l, const struct torus *t)
{
    struct shapes *s = l->shapes;
    uint32_t fewest;

    if (s->shapes == SHAPES_MOST || !links_fit(l, t))
        return;
    fewest = shapes_fewest_moves(t, l->seen, l->hosts);
    if (fewest <= l->moves)
        s->shape[s->shapes++] = (struct shape){.torus = *t, .fewest_moves = fewest};
}

/* Whether a factor of this size and kind differs from those of all other kinds. */
static bool is_kind(const struct torus *t, uint32_t size, unsigned kind)
{
    if (kind == KIND_LINE && size == 2) /* two lines of two are a ring of four */
        return t->dims == 0 || t->size[t->dims - 1] != 2 || t->wrap[t->dims - 1];
    return kind <= KIND_LINE || (size >= 4 && size <= GRAPH_DIRECTIONS_MOST + 1);
}

/* Appends a factor of each kind; factors come in ascending order of size, and of kind. */
static void extend(struct listing *l, const struct torus *t, uint32_t left, uint32_t size,
                   unsigned first_kind)
{
    struct error why;

    for (; size <= left; size++, first_kind = KIND_RING)
        for (unsigned kind = first_kind; kind < KINDS && left % size == 0; kind++) {
            struct torus longer = *t;
            const struct graph *graph = NULL;
            if (!is_kind(t, size, kind))
                continue;
            if (kind >= KIND_COMPLETE)
                graph = kind == KIND_COMPLETE ? graph_complete(size, &why) : graph_star(size, &why);
            if ((kind >= KIND_COMPLETE && graph == NULL) ||
                torus_append(&longer, size, kind == KIND_RING, graph) != 0)
                continue;
            if (size == left)
                consider(l, &longer);
            else
                extend(l, &longer, left / size, size, kind);
        }
}

static unsigned rings(const struct torus *t)
{
    unsigned count = 0;

    for (unsigned i = 0; i < t->dims; i++)
        count += t->wrap[i];
    return count;
}

static int by_preference(const void *a, const void *b)
{
    const struct torus *x = &((const struct shape *)a)->torus,
                       *y = &((const struct shape *)b)->torus;
    uint32_t sum_x = 0, sum_y = 0;

    if (x->graphs != y->graphs)
        return x->graphs < y->graphs ? -1 : 1;
    if (rings(x) + y->dims != rings(y) + x->dims) /* fewer dimensions that are not rings */
        return rings(x) + y->dims > rings(y) + x->dims ? -1 : 1;
    if (x->dims != y->dims)
        return x->dims < y->dims ? -1 : 1;
    for (unsigned i = 0; i < x->dims; i++) {
        sum_x += x->size[i];
        sum_y += y->size[i];
    }
    if (sum_x != sum_y)
        return sum_x < sum_y ? -1 : 1;
    for (unsigned i = 0; i < x->dims; i++)
        if (x->size[i] != y->size[i] || x->wrap[i] != y->wrap[i])
            return x->size[i] < y->size[i] || (x->size[i] == y->size[i] && x->wrap[i]) ? -1 : 1;
    return 0;
}

/* Lists the networks of that many nodes that may be made with at most `moves` moves; a host that is missing (more nodes
 * than `hosts`) counts as one move. Returns 0, or -1 with *e. */
static int shapes_list(struct shapes *s, uint32_t nodes, const struct network *seen, uint32_t hosts,
                       uint32_t moves, struct error *e)
{
    struct listing l = {.shapes = s, .seen = seen, .hosts = hosts, .moves = moves};

    *s = (struct shapes){.shapes = 0};
    s->shape = calloc(SHAPES_MOST, sizeof *s->shape);
    if (s->shape == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for a list of networks");
    extend(&l, &(struct torus){.nodes = 1}, nodes, 2, KIND_RING);
    qsort(s->shape, s->shapes, sizeof *s->shape, by_preference);
    return 0;
}

static void shapes_free(struct shapes *s)
{
    free(s->shape);
}

#define MISMATCHES_A_MOVE 4u /* of a swap: two links are missing, two cables are left over */
#define BUDGET_LEAST 100000u /* hosts that may be placed for one network */
#define ALL_TRIES_MOST                                                                             \
    24u /* nodes; in a larger network, wrong cables are not near all of a few first hosts */
#define ALL_TRIES_ONE_MOVE 12u
#define DETOURS_MOST 16u /* nodes, likewise */
#define MANY (UINT32_MAX / 2)
#define BUDGET_A_HOST 400u

struct candidate {
    struct torus torus;
    uint32_t fewest_moves; /* that it needs at least */
    uint64_t budget;       /* hosts that may still be placed */
    bool done;             /* all first hosts have been tried */
};

struct looking {
    struct nearest *nearest;
    const struct wiring *wiring;
    struct network seen, wanted;
    struct torus torus;
    uint32_t fewest; /* moves that this torus needs at least */
    uint32_t least;  /* moves; with fewer there is no network */
    uint32_t most;   /* moves that may be needed; falls when a network is found */
    bool detours;
    bool ranks_fixed; /* the hosts at some nodes */
    uint32_t *fixed;
    struct candidate *candidate; /* in the order in which they are preferred */
    uint32_t candidates;
    struct error *error;
    bool failed;
};

/* Returns the most mismatches of a placement that needs at most l->most moves; negative if no placement does. */
static int limit(const struct looking *l)
{
    uint32_t missing =
        l->torus.nodes > l->wiring->input->hosts ? l->torus.nodes - l->wiring->input->hosts : 0;
    uint32_t most = 0;

    if (l->most == UINT32_MAX || l->most < l->fewest || l->most < missing)
        return -1;
    for (uint32_t i = 0; i < l->wanted.nodes; i++)
        most = l->wanted.degree[i] > most ? l->wanted.degree[i] : most;
    return (int)(MISMATCHES_A_MOVE * (l->most - missing) + missing * most);
}

static int found(void *context, const uint32_t *host_at, uint32_t mismatches)
{
    struct looking *l = context;
    struct links links;
    struct changes changes;
    uint32_t count;

    (void)mismatches;
    if (links_make(&links, l->wiring, &l->torus, host_at, l->error) != 0) {
        l->failed = true;
        return -1;
    }
    count = links.missing_hosts <= l->most
                ? changes_find(&changes, &links, l->most - links.missing_hosts)
                : UINT32_MAX;
    if (count != UINT32_MAX) {
        count += links.missing_hosts;
        l->nearest->found = true;
        l->nearest->torus = l->torus;
        l->nearest->moves = count;
        memcpy(l->nearest->host_at, host_at, l->torus.nodes * sizeof *host_at);
        l->most = count - 1;
    }
    links_free(&links);
    return limit(l);
}

static bool all_alike(const struct torus *t)
{
    for (unsigned i = 0; i < t->dims; i++)
        if (t->graph[i] != NULL ? t->graph[i]->kind != GRAPH_KIND_COMPLETE : !t->wrap[i])
            return false;
    return true;
}

/* Lists the neighbours of node 0 that a symmetry exchanges: both along a ring, and those along two equal rings. Those
 * along factors of the same size stand in a row. */
static uint32_t list_exchangeable(const struct torus *t, uint32_t (*pair)[2])
{
    uint32_t pairs = 0;

    for (unsigned dim = 0; dim < t->dims; dim++) {
        if (t->graph[dim] != NULL || !t->wrap[dim] || t->size[dim] < 3)
            continue;
        pair[pairs][0] = torus_walk(t, 0, dim, 1, 1);
        pair[pairs++][1] = torus_walk(t, 0, dim, -1, 1);
        if (dim + 1 < t->dims && t->graph[dim + 1] == NULL && t->wrap[dim + 1] &&
            t->size[dim + 1] == t->size[dim]) {
            pair[pairs][0] = torus_walk(t, 0, dim, 1, 1);
            pair[pairs++][1] = torus_walk(t, 0, dim + 1, 1, 1);
        }
    }
    return pairs;
}

/* Tries some first hosts for one network. */
static int look_for(struct looking *l, struct candidate *c, uint32_t first_try, uint32_t tries,
                    struct error *e)
{
    uint32_t hosts = l->wiring->input->hosts, nodes = c->torus.nodes;
    uint32_t exchangeable[2 * TORUS_MAX_DIMS][2];
    int result = -1, most;

    l->torus = c->torus;
    l->fewest = c->fewest_moves > l->least ? c->fewest_moves : l->least;
    nodes = nodes > hosts ? nodes : hosts;
    if (network_of_torus(&l->wanted, &l->torus, nodes, e) != 0)
        return -1;
    most = limit(l);
    if (most < 0) {
        result = 0;
    } else if (network_of_cables(&l->seen, l->wiring, nodes, e) == 0) {
        bool alike = all_alike(&l->torus);
        struct placement p = {.wanted = &l->wanted,
                              .seen = &l->seen,
                              .fixed = l->ranks_fixed ? l->fixed : NULL,
                              .alike = alike,
                              .exchangeable = (const uint32_t(*)[2])exchangeable,
                              .exchangeables =
                                  alike ? list_exchangeable(&l->torus, exchangeable) : 0,
                              .detours = l->detours,
                              .first_try = first_try,
                              .tries = tries,
                              .limit = (uint32_t)most,
                              .budget = &c->budget,
                              .found = found,
                              .context = l};
        result = placement_search(&p, e);
        network_free(&l->seen);
    }
    network_free(&l->wanted);
    c->done = result == 0;
    return l->failed || result < 0 ? -1 : 0;
}

static int add_candidate(struct looking *l, const struct torus *t, uint32_t fewest, struct error *e)
{
    struct candidate *more = realloc(l->candidate, (l->candidates + 1) * sizeof *more);

    if (more == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for a list of networks");
    l->candidate = more;
    more[l->candidates++] = (struct candidate){
        .torus = *t,
        .fewest_moves = fewest,
    };
    return 0;
}

static int add_wanted(struct looking *l, struct error *e)
{
    const struct cabling_input *in = l->wiring->input;

    for (uint32_t i = 0; i <= in->hosts || i < in->wanted->nodes; i++)
        l->fixed[i] = CABLING_NONE;
    for (uint32_t i = 0; i < in->hosts; i++)
        if (in->host[i].rank != CABLING_NONE) {
            l->fixed[in->host[i].rank] = i;
            l->ranks_fixed = true;
        }
    if (in->wanted->nodes > in->hosts + CABLING_MOVES_MOST)
        return 0;
    return add_candidate(l, in->wanted, 0, e);
}

/* Adds all networks of that many nodes. */
static int add_size(struct looking *l, uint32_t nodes, struct error *e)
{
    struct shapes s;
    struct network seen;
    int result;

    if (nodes < 2 || nodes > CABLING_HOSTS_MOST)
        return 0;
    if (network_of_cables(&seen, l->wiring, nodes, e) != 0)
        return -1;
    result = shapes_list(&s, nodes, &seen, l->wiring->input->hosts, CABLING_MOVES_MOST, e);
    network_free(&seen);
    for (uint32_t i = 0; result == 0 && i < s.shapes; i++)
        result = add_candidate(l, &s.shape[i].torus, s.shape[i].fewest_moves, e);
    shapes_free(&s);
    return result;
}

static int add_all(struct looking *l, struct error *e)
{
    uint32_t hosts = l->wiring->input->hosts, linked = 0;
    struct network seen;

    if (l->wiring->input->wanted != NULL)
        return add_wanted(l, e);
    if (network_of_cables(&seen, l->wiring, 0, e) != 0)
        return -1;
    for (uint32_t i = 0; i < hosts; i++)
        linked += seen.degree[i] > 0;
    network_free(&seen);
    if (add_size(l, hosts, e) != 0 || add_size(l, hosts + 1, e) != 0 ||
        add_size(l, hosts - 1, e) != 0)
        return -1;
    return linked + 1 < hosts ? add_size(l, linked, e) : 0;
}

/* The nodes of the largest network that gets all tries. If one cable is wrong, only few first hosts are near it. */
static uint32_t nodes_most(const struct looking *l)
{
    if (l->detours)
        return DETOURS_MOST;
    return l->most == 1 ? ALL_TRIES_ONE_MOVE : ALL_TRIES_MOST;
}

/* First looks for networks that need one move, then for ones that need more: the fewer moves, the faster. If a network
 * is the right one, a few first hosts are often enough; so all networks get a few tries before any gets many. In the
 * last round, small networks get tries with detours. */
static int look(struct looking *l, struct error *e)
{
    static const uint32_t most[] = {1, 2, CABLING_MOVES_MOST}, tries[] = {4, 12, MANY, MANY};

    for (unsigned level = 0; level < sizeof most / sizeof most[0]; level++) {
        uint32_t first_try = 0;
        l->most = most[level];
        l->detours = false;
        l->least = level > 0 ? most[level - 1] + 1 : l->wiring->input->wanted == NULL;
        for (uint32_t i = 0; i < l->candidates; i++) {
            l->candidate[i].done = false;
            l->candidate[i].budget =
                BUDGET_LEAST + (uint64_t)BUDGET_A_HOST * l->candidate[i].torus.nodes;
        }
        for (unsigned round = 0; round < sizeof tries / sizeof tries[0]; round++) {
            for (uint32_t i = 0; i < l->candidates; i++)
                if (!l->candidate[i].done &&
                    (round < 2 || l->candidate[i].torus.nodes <= nodes_most(l)) &&
                    look_for(l, &l->candidate[i], first_try, tries[round], e) != 0)
                    return -1;
            l->detours = round == 2 && level > 0;
            first_try = l->detours ? 0 : first_try + tries[round];
            for (uint32_t i = 0; i < l->candidates && l->detours; i++)
                l->candidate[i].done = false;
        }
        if (l->nearest->found)
            return 0;
    }
    return 0;
}

int nearest_find(struct nearest *n, const struct wiring *w, struct error *e)
{
    const struct torus *wanted = w->input->wanted;
    size_t room = (size_t)w->input->hosts + 2 + (wanted != NULL ? wanted->nodes : 0);
    struct looking l = {.nearest = n, .wiring = w, .error = e};
    int result = -1;

    *n = (struct nearest){.found = false};
    n->host_at = calloc(room, sizeof *n->host_at);
    l.fixed = calloc(room, sizeof *l.fixed);
    if (n->host_at == NULL || l.fixed == NULL)
        (void)error_set(e, ERROR_MEMORY, "no memory for %zu ranks", room);
    else if (add_all(&l, e) == 0)
        result = look(&l, e);
    free(l.candidate);
    free(l.fixed);
    if (result != 0)
        nearest_free(n);
    return result;
}

void nearest_free(struct nearest *n)
{
    free(n->host_at);
}
