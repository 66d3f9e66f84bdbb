#include "daemon/lib/cabling/placing.h"

#include <stdlib.h>

#include "daemon/lib/cabling/placing_grow.h"

#define COMPLETE_SEARCH_MOST 9u /* nodes */
#define FIRST_NODES_MOST 12u    /* where the first host is placed, one after the other */
#define ORDERS_MOST 120u        /* of the neighbours of the first host */
#define SLACK 4u                /* mismatches that exchanging hosts at the end may remove */

struct search {
    const struct placing *p;
    struct grow grow;
    int64_t limit; /* negative: the search has ended */
    bool short_of_memory;
    uint32_t order[CABLING_HOSTS_MOST + 1]; /* of nodes */
    uint32_t orders;                        /* tried around the present first host */
    bool all_tried;
};

static bool ended(const struct search *s)
{
    return s->limit < 0 || s->short_of_memory || *s->p->budget == 0;
}

static void spend(struct search *s)
{
    uint64_t placed = s->grow.board.placed;

    *s->p->budget -= placed < *s->p->budget ? placed : *s->p->budget;
}

static void report(struct search *s)
{
    const struct board *b = &s->grow.board;

    if (b->mismatches <= s->limit)
        s->limit = s->p->found(s->p->context, b->host_at, b->mismatches);
}

/* Sets the order of nodes: each one, if possible, next to one before it. */
static void order_nodes(struct search *s)
{
    const struct network *w = s->p->wanted;
    bool seen[CABLING_HOSTS_MOST + 1] = {false};
    uint32_t count = 0;

    for (uint32_t node = 0; node < w->nodes; node++) {
        if (seen[node])
            continue;
        seen[node] = true;
        s->order[count++] = node;
        for (uint32_t i = count - 1; i < count; i++)
            for (uint32_t k = w->first[s->order[i]]; k < w->first[s->order[i] + 1]; k++)
                if (!seen[w->neighbour[k]]) {
                    seen[w->neighbour[k]] = true;
                    s->order[count++] = w->neighbour[k];
                }
    }
}

/* Tries all hosts at each node that is not placed. */
static void try_all(struct search *s)
{
    struct board *b = &s->grow.board;
    uint32_t node = CABLING_NONE;

    for (uint32_t i = 0; i < b->nodes && node == CABLING_NONE; i++)
        if (b->host_at[s->order[i]] == CABLING_NONE)
            node = s->order[i];
    if (node == CABLING_NONE) {
        report(s);
        return;
    }
    for (uint32_t host = 0; host < b->nodes && !ended(s); host++) {
        if (b->node_of[host] != CABLING_NONE ||
            (int64_t)b->mismatches + board_price(b, node, host) > s->limit)
            continue;
        --*s->p->budget;
        board_place(b, node, host);
        try_all(s);
        board_undo(b);
        if (b->placed == 0 && s->p->alike && b->wanted->degree[b->nodes - 1] > 0)
            return; /* no host can be left out, so this one is at some node, and all are alike */
    }
}

/* Places all other hosts, reports the result, and takes all away but the first `kept`. */
static void complete(struct search *s, uint32_t detour)
{
    struct grow *g = &s->grow;
    int grown = grow_on(g, (uint32_t)s->limit + SLACK, detour);

    if (grown < 0) {
        s->short_of_memory = true;
    } else if (grown > 0) {
        board_improve(&g->board, s->p->fixed);
        report(s);
    }
    spend(s);
}

/* A first host at a first node, and its neighbours at the neighbours of the node. */
struct start {
    uint32_t node, host;
    uint32_t nodes, hosts; /* neighbours */
    const uint32_t *node_beside, *host_beside;
    uint32_t chosen[TORUS_MAX_PORTS * 2]; /* by neighbour of the node: a host, or CABLING_NONE */
};

static void grow_from(struct search *s, const struct start *a, uint32_t detour)
{
    struct grow *g = &s->grow;
    int failed;

    grow_clear(g);
    failed = grow_place(g, a->node, a->host);
    for (uint32_t i = 0; i < a->nodes && failed == 0; i++)
        if (a->chosen[i] != CABLING_NONE)
            failed = grow_place(g, a->node_beside[i], a->chosen[i]);
    s->short_of_memory = failed != 0;
    if (!s->short_of_memory)
        complete(s, detour);
}

static void try_start(struct search *s, const struct start *a)
{
    s->orders++;
    if (!s->p->detours)
        grow_from(s, a, GROW_NO_DETOUR);
    for (uint32_t step = 0; step < s->p->wanted->nodes && s->p->detours && !ended(s); step++)
        grow_from(s, a, step);
}

static uint32_t common_neighbours(const struct network *n, uint32_t a, uint32_t b)
{
    uint32_t common = 0;

    for (uint32_t k = n->first[a]; k < n->first[a + 1]; k++)
        common += n->neighbour[k] != b && network_links(n, n->neighbour[k], b) > 0;
    return common;
}

/* Whether a host fits beside the hosts that are chosen so far: two hosts have as many neighbours in common as their
 * nodes have. */
static uint32_t misfit(const struct search *s, const struct start *a, uint32_t count, uint32_t host)
{
    const struct network *w = s->p->wanted, *n = s->p->seen;
    uint32_t sum = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (a->chosen[i] == CABLING_NONE)
            continue;
        uint32_t there = common_neighbours(w, a->node_beside[i], a->node_beside[count]);
        uint32_t here = common_neighbours(n, a->chosen[i], host);
        sum += there > here ? there - here : here - there;
        sum += network_links(w, a->node_beside[i], a->node_beside[count]) !=
               network_links(n, a->chosen[i], host);
    }
    return sum +
           (network_links(w, a->node, a->node_beside[count]) != network_links(n, a->host, host));
}

/* Whether a host may stand at the next neighbour of the first node, of those that a symmetry would exchange. */
static bool may_stand(const struct search *s, const struct start *a, uint32_t count, uint32_t host)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < s->p->exchangeables && a->node == 0; k++) {
            const uint32_t *pair = s->p->exchangeable[k];
            if (pair[0] == a->node_beside[i] && pair[1] == a->node_beside[count] &&
                a->chosen[i] != CABLING_NONE && host < a->chosen[i])
                return false;
            if (pair[1] == a->node_beside[i] && pair[0] == a->node_beside[count] &&
                a->chosen[i] != CABLING_NONE && host > a->chosen[i])
                return false;
        }
    return true;
}

/* Tries the hosts beside the first one at the neighbours of the first node, in all orders, the best fitting first. */
static void try_orders(struct search *s, struct start *a, uint32_t count)
{
    uint32_t worth[TORUS_MAX_PORTS * 2];
    bool any = false;

    if (ended(s) || s->orders >= ORDERS_MOST)
        return;
    if (count == a->nodes) {
        try_start(s, a);
        return;
    }
    for (uint32_t k = 0; k < a->hosts; k++) {
        bool taken = false;
        for (uint32_t i = 0; i < count; i++)
            taken |= a->chosen[i] == a->host_beside[k];
        any |= !taken;
        worth[k] = taken || !may_stand(s, a, count, a->host_beside[k])
                       ? CABLING_NONE
                       : misfit(s, a, count, a->host_beside[k]);
    }
    for (uint32_t round = 0; round < a->hosts && any; round++) {
        uint32_t best = 0;
        for (uint32_t k = 1; k < a->hosts; k++)
            if (worth[k] < worth[best])
                best = k;
        if (worth[best] == CABLING_NONE)
            return;
        worth[best] = CABLING_NONE;
        a->chosen[count] = a->host_beside[best];
        try_orders(s, a, count + 1);
    }
    if (!any) {
        a->chosen[count] = CABLING_NONE;
        try_orders(s, a, count + 1);
    }
}

static void try_first(struct search *s, uint32_t node, uint32_t host)
{
    const struct network *w = s->p->wanted, *n = s->p->seen;
    struct start a = {
        .node = node,
        .host = host,
        .nodes = w->first[node + 1] - w->first[node],
        .hosts = n->first[host + 1] - n->first[host],
        .node_beside = w->neighbour + w->first[node],
        .host_beside = n->neighbour + n->first[host],
    };

    s->orders = 0;
    if (a.nodes <= TORUS_MAX_PORTS * 2 && a.hosts <= TORUS_MAX_PORTS * 2)
        try_orders(s, &a, 0);
}

/* Chooses the nodes for the first host: of those with links, first the ones with the rarest number of links, which
 * fewest hosts can have. */
static uint32_t choose_first_nodes(const struct search *s, uint32_t *first)
{
    const struct network *w = s->p->wanted;
    uint32_t alike[CABLING_HOSTS_MOST + 1] = {0}, count = 0;
    bool taken[CABLING_HOSTS_MOST + 1] = {false};

    for (uint32_t a = 0; a < w->nodes; a++)
        for (uint32_t b = 0; b < w->nodes; b++)
            alike[a] += w->degree[a] == w->degree[b];
    while (count < FIRST_NODES_MOST && (count == 0 || !s->p->alike)) {
        uint32_t best = CABLING_NONE, start = count * w->nodes / FIRST_NODES_MOST;
        for (uint32_t i = 0; i < w->nodes; i++) {
            uint32_t node = (start + i) % w->nodes;
            if (!taken[node] && w->degree[node] > 0 &&
                (best == CABLING_NONE || alike[node] < alike[best]))
                best = node;
        }
        if (best == CABLING_NONE)
            break;
        taken[best] = true;
        first[count++] = best;
    }
    return count;
}

static uint32_t divisor(uint32_t a, uint32_t b)
{
    return b == 0 ? a : divisor(b, a % b);
}

static void try_firsts(struct search *s)
{
    uint32_t first[FIRST_NODES_MOST], count = choose_first_nodes(s, first);
    uint32_t nodes = s->p->wanted->nodes, tries = 0;
    uint32_t step = nodes / 2 | 1u; /* hosts that are tried in a row lie apart */

    while (divisor(step, nodes) != 1)
        step += 2;
    s->all_tried = true;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < nodes && !ended(s); k++) {
            uint32_t host = (uint32_t)((uint64_t)k * step % nodes);
            if (s->p->wanted->degree[first[i]] != s->p->seen->degree[host] ||
                tries++ < s->p->first_try)
                continue;
            if (tries > s->p->first_try + s->p->tries) {
                s->all_tried = false;
                return;
            }
            try_first(s, first[i], host);
        }
}

static void try_fixed(struct search *s)
{
    struct grow *g = &s->grow;

    grow_clear(g);
    for (uint32_t node = 0; node < g->board.nodes; node++)
        if (s->p->fixed[node] != CABLING_NONE && grow_place(g, node, s->p->fixed[node]) != 0)
            s->short_of_memory = true;
    if (!s->short_of_memory)
        complete(s, GROW_NO_DETOUR);
}

static bool any_fixed(const struct placing *p)
{
    for (uint32_t node = 0; p->fixed != NULL && node < p->wanted->nodes; node++)
        if (p->fixed[node] != CABLING_NONE)
            return true;
    return false;
}

int placing_search(const struct placing *p, struct error *e)
{
    struct search *s = calloc(1, sizeof *s);
    bool short_of_memory, all_tried;

    if (s == NULL)
        return error_set(e, ERROR_MEMORY, "no memory to place hosts");
    *s = (struct search){.p = p, .limit = p->limit, .all_tried = true};
    if (grow_make(&s->grow, p->wanted, p->seen, e) != 0) {
        free(s);
        return -1;
    }
    order_nodes(s);
    if (any_fixed(p))
        try_fixed(s);
    else if (p->wanted->nodes <= COMPLETE_SEARCH_MOST)
        try_all(s);
    else
        try_firsts(s);
    short_of_memory = s->short_of_memory;
    all_tried = s->all_tried;
    grow_free(&s->grow);
    free(s);
    if (short_of_memory)
        return error_set(e, ERROR_MEMORY, "no memory to place hosts");
    return all_tried ? 0 : 1;
}
