#include "daemon/cabling/nearest.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/cabling/changes.h"
#include "daemon/cabling/placing.h"
#include "daemon/cabling/shapes.h"

#define MISMATCHES_A_MOVE 4u /* of a swap: two links are missing, two cables are left over */
#define BUDGET_LEAST 100000u /* hosts that may be placed for one network */
#define BUDGET_A_HOST 400u

struct looking {
    struct nearest *nearest;
    const struct wiring *wiring;
    struct network seen, wanted;
    struct torus torus;
    uint32_t fewest;  /* moves that this torus needs at least */
    uint32_t most;    /* moves that may be needed; falls when a network is found */
    bool ranks_fixed; /* the hosts at some nodes */
    uint32_t *fixed;
    uint64_t budget;
    struct error *error;
    bool failed;
};

/* The most mismatches of a placing that needs at most l->most moves, negative if there are none. */
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

/* Looks for one network. */
static int look_for(struct looking *l, const struct shape *shape, struct error *e)
{
    uint32_t hosts = l->wiring->input->hosts, nodes = shape->torus.nodes;
    int result = -1;

    l->torus = shape->torus;
    l->fewest = shape->fewest_moves;
    l->budget = BUDGET_LEAST + (uint64_t)BUDGET_A_HOST * nodes;
    nodes = nodes > hosts ? nodes : hosts;
    if (network_of_torus(&l->wanted, &l->torus, nodes, e) != 0)
        return -1;
    if (network_of_cables(&l->seen, l->wiring, nodes, e) == 0) {
        struct placing p = {.wanted = &l->wanted,
                            .seen = &l->seen,
                            .fixed = l->ranks_fixed ? l->fixed : NULL,
                            .alike = all_alike(&l->torus) && l->torus.nodes == nodes,
                            .limit = 0,
                            .budget = &l->budget,
                            .found = found,
                            .context = l};
        int most = limit(l);
        p.limit = most >= 0 ? (uint32_t)most : 0;
        result = most >= 0 ? placing_search(&p, e) : 0;
        network_free(&l->seen);
    }
    network_free(&l->wanted);
    return l->failed ? -1 : result;
}

static int look_for_wanted(struct looking *l, struct error *e)
{
    const struct cabling_input *in = l->wiring->input;
    struct shape shape = {.torus = *in->wanted};

    for (uint32_t i = 0; i <= in->hosts || i < in->wanted->nodes; i++)
        l->fixed[i] = CABLING_NONE;
    for (uint32_t i = 0; i < in->hosts; i++)
        if (in->host[i].rank != CABLING_NONE) {
            l->fixed[in->host[i].rank] = i;
            l->ranks_fixed = true;
        }
    if (in->wanted->nodes > in->hosts + CABLING_MOVES_MOST)
        return 0;
    return look_for(l, &shape, e);
}

/* Looks for all networks of so many nodes. */
static int look_for_size(struct looking *l, uint32_t nodes, struct error *e)
{
    struct shapes s;
    struct network seen;
    int result;

    if (nodes < 2 || nodes > CABLING_HOSTS_MOST || l->most == UINT32_MAX)
        return 0;
    if (network_of_cables(&seen, l->wiring, nodes, e) != 0)
        return -1;
    result = shapes_list(&s, nodes, &seen, l->wiring->input->hosts, l->most, e);
    network_free(&seen);
    for (uint32_t i = 0; result == 0 && i < s.shapes; i++)
        if (s.shape[i].fewest_moves <= l->most && l->most != UINT32_MAX)
            result = look_for(l, &s.shape[i], e);
    shapes_free(&s);
    return result;
}

/* First looks for networks that need two moves, then for ones that need more: the fewer moves, the faster. */
static int look(struct looking *l, uint32_t linked, struct error *e)
{
    static const uint32_t most[] = {2, CABLING_MOVES_MOST};
    uint32_t hosts = l->wiring->input->hosts;

    for (unsigned i = 0; i < sizeof most / sizeof most[0] && !l->nearest->found; i++) {
        l->most = most[i];
        if (l->wiring->input->wanted != NULL) {
            if (look_for_wanted(l, e) != 0)
                return -1;
            continue;
        }
        if (look_for_size(l, hosts, e) != 0 || look_for_size(l, hosts + 1, e) != 0 ||
            look_for_size(l, hosts - 1, e) != 0 ||
            (linked + 1 < hosts && look_for_size(l, linked, e) != 0))
            return -1;
    }
    return 0;
}

int nearest_find(struct nearest *n, const struct wiring *w, struct error *e)
{
    const struct torus *wanted = w->input->wanted;
    size_t room = (size_t)w->input->hosts + 2 + (wanted != NULL ? wanted->nodes : 0);
    struct looking l = {.nearest = n, .wiring = w, .error = e};
    struct network seen;
    int result = -1;

    *n = (struct nearest){.found = false};
    n->host_at = calloc(room, sizeof *n->host_at);
    l.fixed = calloc(room, sizeof *l.fixed);
    if (n->host_at == NULL || l.fixed == NULL) {
        (void)error_set(e, ERROR_MEMORY, "no memory for %zu ranks", room);
    } else if (network_of_cables(&seen, w, 0, e) == 0) {
        uint32_t linked = 0;
        for (uint32_t i = 0; i < seen.nodes; i++)
            linked += seen.degree[i] > 0;
        network_free(&seen);
        result = look(&l, linked, e);
    }
    free(l.fixed);
    if (result != 0)
        nearest_free(n);
    return result;
}

void nearest_free(struct nearest *n)
{
    free(n->host_at);
}
