#include "daemon/lib/cabling/placement.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/grow.h"
#include "daemon/lib/cabling/network.h"

/* The state of one placement: which host stands at which node, and how many mismatches this makes. */

struct board {
    const struct network *wanted, *seen;
    uint32_t nodes;
    uint32_t *host_at;   /* by node; CABLING_NONE: not placed */
    uint32_t *node_of;   /* by host */
    uint32_t placed;     /* how many */
    uint32_t *beside;    /* by node: how many of its neighbours are placed */
    uint32_t *order;     /* the nodes in the order of placing */
    uint32_t mismatches; /* among the hosts that are placed */
};

static void board_free(struct board *b)
{
    free(b->host_at);
    free(b->node_of);
    free(b->order);
    free(b->beside);
}

static int board_make(struct board *b, const struct network *wanted, const struct network *seen,
                      struct error *e)
{
    *b = (struct board){.wanted = wanted, .seen = seen, .nodes = wanted->nodes};
    b->host_at = calloc((size_t)b->nodes + 1, sizeof *b->host_at);
    b->node_of = calloc((size_t)b->nodes + 1, sizeof *b->node_of);
    b->order = calloc((size_t)b->nodes + 1, sizeof *b->order);
    b->beside = calloc((size_t)b->nodes + 1, sizeof *b->beside);
    if (b->beside == NULL || b->host_at == NULL || b->node_of == NULL || b->order == NULL) {
        board_free(b);
        return error_set(e, ERROR_MEMORY, "no memory to place %u hosts", b->nodes);
    }
    for (uint32_t i = 0; i < b->nodes; i++)
        b->host_at[i] = b->node_of[i] = CABLING_NONE;
    return 0;
}

static uint32_t difference(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

/* The mismatches that a host would add at a node, next to the hosts that are placed. */
static uint32_t board_price(const struct board *b, uint32_t node, uint32_t host)
{
    const struct network *w = b->wanted, *s = b->seen;
    uint32_t price = 0;

    for (uint32_t k = w->first[node]; k < w->first[node + 1]; k++) {
        uint32_t there = b->host_at[w->neighbour[k]];
        if (there != CABLING_NONE)
            price +=
                difference(network_links(w, node, w->neighbour[k]), network_links(s, host, there));
    }
    for (uint32_t k = s->first[host]; k < s->first[host + 1]; k++) {
        uint32_t there = b->node_of[s->neighbour[k]];
        if (there != CABLING_NONE && network_links(w, node, there) == 0)
            price += network_links(s, host, s->neighbour[k]);
    }
    return price;
}

static void count_beside(struct board *b, uint32_t node, uint32_t change)
{
    for (uint32_t k = b->wanted->first[node]; k < b->wanted->first[node + 1]; k++)
        b->beside[b->wanted->neighbour[k]] += change;
}

static void board_place(struct board *b, uint32_t node, uint32_t host)
{
    b->mismatches += board_price(b, node, host);
    b->host_at[node] = host;
    b->node_of[host] = node;
    b->order[b->placed++] = node;
    count_beside(b, node, 1);
}

/* Takes the last host away, or all hosts. */
static void board_undo(struct board *b)
{
    uint32_t node = b->order[--b->placed], host = b->host_at[node];

    b->host_at[node] = b->node_of[host] = CABLING_NONE;
    b->mismatches -= board_price(b, node, host);
    count_beside(b, node, UINT32_MAX); /* one less */
}

static void board_clear(struct board *b)
{
    for (uint32_t i = 0; i < b->placed; i++) {
        uint32_t node = b->order[i];
        b->node_of[b->host_at[node]] = CABLING_NONE;
        b->host_at[node] = CABLING_NONE;
    }
    memset(b->beside, 0, b->nodes * sizeof *b->beside);
    b->placed = b->mismatches = 0;
}

static void exchange_hosts(struct board *b, uint32_t x, uint32_t y)
{
    uint32_t host = b->host_at[x];

    b->host_at[x] = b->host_at[y];
    b->host_at[y] = host;
    b->node_of[b->host_at[x]] = x;
    b->node_of[b->host_at[y]] = y;
}

/* The mismatches that the hosts at two nodes have; those between the two count twice, and do not change when the two
 * are exchanged. */
static uint32_t price_of_both(const struct board *b, uint32_t x, uint32_t y)
{
    return board_price(b, x, b->host_at[x]) + board_price(b, y, b->host_at[y]);
}

static bool improve_once(struct board *b, const uint32_t *fixed)
{
    uint32_t best = 0, best_x = 0, best_y = 0;

    for (uint32_t x = 0; x < b->nodes; x++) {
        if ((fixed != NULL && fixed[x] != CABLING_NONE) || board_price(b, x, b->host_at[x]) == 0)
            continue;
        for (uint32_t y = 0; y < b->nodes; y++) {
            if (y == x || (fixed != NULL && fixed[y] != CABLING_NONE))
                continue;
            uint32_t before = price_of_both(b, x, y);
            exchange_hosts(b, x, y);
            uint32_t after = price_of_both(b, x, y);
            exchange_hosts(b, x, y);
            if (after < before && before - after > best) {
                best = before - after;
                best_x = x;
                best_y = y;
            }
        }
    }
    if (best == 0)
        return false;
    exchange_hosts(b, best_x, best_y);
    b->mismatches -= best;
    return true;
}

/* Exchanges pairs of hosts as long as this lessens the mismatches of a full board. Nodes with `fixed` hosts keep them
 * (NULL: there are none). */
static void board_improve(struct board *b, const uint32_t *fixed)
{
    while (b->mismatches > 0 && improve_once(b, fixed))
        continue;
}

/* Completes a placement from the hosts that are placed already. */

/* A host that some placed neighbours of a node have cables to. */
struct vote {
    uint32_t node, host;
    uint32_t votes; /* when it was written down; it is out of date if more have come since */
    uint32_t below; /* the vote under it on the same stack, counted from 1; 0: none */
};

#define GROW_STACKS 16u
#define GROW_NO_DETOUR UINT32_MAX

struct grow {
    struct board board;
    uint8_t
        *votes; /* node * nodes + host: cables of the host that lead to neighbours of the node */
    struct vote *vote;
    uint32_t written;
    size_t room;
    uint32_t barred_node, barred_host; /* are not to be put together, because of a detour */
    uint32_t stack[GROW_STACKS];       /* by number of votes: the last vote on it, counted from 1 */
    uint32_t dirty[GROW_STACKS];       /* the same for votes with mismatches */
};

#define HOPELESS_NODES_LEAST 25u

static void grow_free(struct grow *g)
{
    board_free(&g->board);
    free(g->votes);
    free(g->vote);
}

/* A growth may take a detour: the step with this number takes the second-best choice. */
static int grow_make(struct grow *g, const struct network *wanted, const struct network *seen,
                     struct error *e)
{
    *g = (struct grow){.room = 1024};
    if (board_make(&g->board, wanted, seen, e) != 0)
        return -1;
    g->votes = calloc((size_t)wanted->nodes * wanted->nodes + 1, sizeof *g->votes);
    g->vote = calloc(g->room, sizeof *g->vote);
    if (g->votes != NULL && g->vote != NULL)
        return 0;
    grow_free(g);
    return error_set(e, ERROR_MEMORY, "no memory to place %u hosts", wanted->nodes);
}

static uint8_t *votes(struct grow *g, uint32_t node, uint32_t host)
{
    return &g->votes[(size_t)node * g->board.nodes + host];
}

/* Takes all hosts away. */
static void grow_clear(struct grow *g)
{
    for (uint32_t i = 0; i < g->written; i++)
        *votes(g, g->vote[i].node, g->vote[i].host) = 0;
    g->written = 0;
    memset(g->stack, 0, sizeof g->stack);
    memset(g->dirty, 0, sizeof g->dirty);
    board_clear(&g->board);
}

static void push(struct grow *g, uint32_t *stack, uint32_t vote)
{
    uint32_t height = g->vote[vote].votes;

    height = height < GROW_STACKS ? height : GROW_STACKS - 1;
    g->vote[vote].below = stack[height];
    stack[height] = vote + 1;
}

static int count_vote(struct grow *g, uint32_t node, uint32_t host, uint8_t cables)
{
    uint8_t *count = votes(g, node, host);

    if (GROW(g->vote, g->written, g->room) != 0)
        return -1;
    *count = (uint8_t)(*count + cables < UINT8_MAX ? *count + cables : UINT8_MAX);
    g->vote[g->written] = (struct vote){.node = node, .host = host, .votes = *count};
    push(g, g->stack, g->written++);
    return 0;
}

/* Places a host. Returns 0, or -1 if there is no memory. */
static int grow_place(struct grow *g, uint32_t node, uint32_t host)
{
    const struct network *w = g->board.wanted, *s = g->board.seen;

    board_place(&g->board, node, host);
    for (uint32_t i = w->first[node]; i < w->first[node + 1]; i++) {
        uint32_t there = w->neighbour[i];
        if (g->board.host_at[there] != CABLING_NONE)
            continue;
        uint8_t links = network_links(w, node, there);
        for (uint32_t k = s->first[host]; k < s->first[host + 1]; k++) {
            uint8_t cables = network_links(s, host, s->neighbour[k]);
            if (g->board.node_of[s->neighbour[k]] == CABLING_NONE &&
                count_vote(g, there, s->neighbour[k], links < cables ? links : cables) != 0)
                return -1;
        }
    }
    return 0;
}

static bool is_barred(const struct grow *g, uint32_t node, uint32_t host)
{
    return g->barred_node == node && g->barred_host == host;
}

/* Takes the next vote from the stacks that have at least two votes. Votes that cause mismatches are put aside. Returns
 * NULL if there is none. */
static const struct vote *next_vote(struct grow *g, uint32_t *stacks)
{
    const struct board *b = &g->board;

    for (uint32_t height = GROW_STACKS - 1; height >= 2; height--)
        while (stacks[height] != 0) {
            uint32_t index = stacks[height] - 1;
            const struct vote *v = &g->vote[index];
            stacks[height] = v->below;
            if (b->host_at[v->node] != CABLING_NONE || b->node_of[v->host] != CABLING_NONE ||
                *votes(g, v->node, v->host) != v->votes || is_barred(g, v->node, v->host))
                continue;
            if (stacks == g->dirty || board_price(b, v->node, v->host) == 0)
                return v;
            push(g, g->dirty, index);
        }
    return NULL;
}

/* The links of a node to nodes where a host is placed. */
static uint32_t links_to_placed(const struct board *b, uint32_t node)
{
    const struct network *w = b->wanted;
    uint32_t links = 0;

    for (uint32_t k = w->first[node]; k < w->first[node + 1]; k++)
        if (b->host_at[w->neighbour[k]] != CABLING_NONE)
            links += network_links(w, node, w->neighbour[k]);
    return links;
}

/* The hosts that may stand at a node since a neighbour has a cable to them. */
struct choice {
    uint32_t node, host, price;
};

static void choose_at(const struct grow *g, uint32_t node, struct choice *best)
{
    const struct board *b = &g->board;
    const struct network *w = b->wanted, *s = b->seen;
    struct choice here = {node, CABLING_NONE, UINT32_MAX};
    uint32_t hosts = 0;

    for (uint32_t i = w->first[node]; i < w->first[node + 1]; i++) {
        uint32_t placed = b->host_at[w->neighbour[i]];
        for (uint32_t k = placed == CABLING_NONE ? 1 : s->first[placed];
             k < (placed == CABLING_NONE ? 0 : s->first[placed + 1]); k++) {
            uint32_t host = s->neighbour[k];
            if (b->node_of[host] != CABLING_NONE || is_barred(g, node, host))
                continue;
            hosts++;
            uint32_t price =
                8 * board_price(b, node, host) + 3 * difference(w->degree[node], s->degree[host]);
            if (price < here.price) {
                here.price = price;
                here.host = host;
            }
        }
    }
    if (here.host == CABLING_NONE)
        return;
    here.price += 2 * (hosts < 8 ? hosts : 8);
    if (here.price < best->price)
        *best = here;
}

/* If no two votes agree, takes the node with the fewest hosts to choose from. If no cable leads on, takes the node with
 * most neighbours, and a host whose cables could all be right. */
static struct choice choose(const struct grow *g)
{
    const struct board *b = &g->board;
    struct choice best = {CABLING_NONE, CABLING_NONE, UINT32_MAX};
    uint32_t most = 0, left;

    for (uint32_t node = 0; node < b->nodes; node++)
        if (b->host_at[node] == CABLING_NONE && b->beside[node] > 0)
            choose_at(g, node, &best);
    if (best.host != CABLING_NONE)
        return best;
    for (uint32_t node = 0; node < b->nodes; node++)
        if (b->host_at[node] == CABLING_NONE &&
            (best.node == CABLING_NONE || links_to_placed(b, node) > most)) {
            best.node = node;
            most = links_to_placed(b, node);
        }
    left = b->wanted->degree[best.node] - most;
    for (uint32_t host = 0; host < b->nodes; host++) {
        uint32_t price = difference(left, b->seen->degree[host]);
        if (b->node_of[host] == CABLING_NONE && price < best.price) {
            best.price = price;
            best.host = host;
        }
    }
    return best;
}

/* Whether too many hosts do not fit, so that it is better to begin elsewhere. */
static bool hopeless(const struct board *b)
{
    return b->nodes >= HOPELESS_NODES_LEAST && b->mismatches > 2 + b->placed / 3;
}

static struct choice next_choice(struct grow *g)
{
    const struct vote *v = next_vote(g, g->stack);

    if (v == NULL)
        v = next_vote(g, g->dirty);
    return v != NULL ? (struct choice){v->node, v->host, 0} : choose(g);
}

/* Places all other hosts, or gives up when there are more than `limit` mismatches, or in a larger network too many for
 * the hosts that are placed so far. Returns 1 if all are placed, 0 if
 * it has given up, -1 if there is no memory. */
static int grow_on(struct grow *g, uint32_t limit, uint32_t detour)
{
    g->barred_node = g->barred_host = CABLING_NONE;
    for (uint32_t step = 0; g->board.placed < g->board.nodes; step++) {
        struct choice c;

        if (g->board.mismatches > limit || hopeless(&g->board))
            return 0;
        c = next_choice(g);
        if (step == detour) {
            g->barred_node = c.node;
            g->barred_host = c.host;
            c = next_choice(g);
        }
        if (grow_place(g, c.node, c.host) != 0)
            return -1;
    }
    return g->board.mismatches <= limit;
}

#define COMPLETE_SEARCH_MOST 9u /* nodes */
#define FIRST_NODES_MOST 12u    /* where the first host is placed, one after another */
#define ORDERS_MOST 120u        /* of the neighbours of the first host */
#define SLACK 4u                /* mismatches that exchanging hosts at the end may remove */

struct search {
    const struct placement *p;
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

/* Whether a host may stand at the next of the neighbours of the first node that a symmetry would exchange. */
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

/* Chooses the nodes for the first host among those with links: first the nodes with the rarest number of links, because
 * the fewest hosts can be there. */
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

static bool any_fixed(const struct placement *p)
{
    for (uint32_t node = 0; p->fixed != NULL && node < p->wanted->nodes; node++)
        if (p->fixed[node] != CABLING_NONE)
            return true;
    return false;
}

int placement_search(const struct placement *p, struct error *e)
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
