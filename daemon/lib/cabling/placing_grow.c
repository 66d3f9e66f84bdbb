#include "daemon/lib/cabling/placing_grow.h"

#include <stdlib.h>
#include <string.h>

#define HOPELESS_NODES_LEAST 25u

int grow_make(struct grow *g, const struct network *wanted, const struct network *seen,
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

void grow_free(struct grow *g)
{
    board_free(&g->board);
    free(g->votes);
    free(g->vote);
}

static uint8_t *votes(struct grow *g, uint32_t node, uint32_t host)
{
    return &g->votes[(size_t)node * g->board.nodes + host];
}

void grow_clear(struct grow *g)
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

    if (g->written == g->room) {
        struct vote *more = realloc(g->vote, 2 * (size_t)g->room * sizeof *more);
        if (more == NULL)
            return -1;
        g->vote = more;
        g->room *= 2;
    }
    *count = (uint8_t)(*count + cables < UINT8_MAX ? *count + cables : UINT8_MAX);
    g->vote[g->written] = (struct vote){.node = node, .host = host, .votes = *count};
    push(g, g->stack, g->written++);
    return 0;
}

int grow_place(struct grow *g, uint32_t node, uint32_t host)
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

static uint32_t difference(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
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

/* Where no two votes agree, takes the node with the fewest hosts to choose from. If no cable leads on, takes the node
 * with most neighbours, and a host whose cables could all be right. */
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

/* Whether so many hosts do not fit that it is better to begin elsewhere. */
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

int grow_on(struct grow *g, uint32_t limit, uint32_t detour)
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
