#include "daemon/lib/cabling/placing_board.h"

#include <stdlib.h>
#include <string.h>

int board_make(struct board *b, const struct network *wanted, const struct network *seen,
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

void board_free(struct board *b)
{
    free(b->host_at);
    free(b->node_of);
    free(b->order);
    free(b->beside);
}

static uint32_t difference(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

uint32_t board_price(const struct board *b, uint32_t node, uint32_t host)
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

void board_place(struct board *b, uint32_t node, uint32_t host)
{
    b->mismatches += board_price(b, node, host);
    b->host_at[node] = host;
    b->node_of[host] = node;
    b->order[b->placed++] = node;
    count_beside(b, node, 1);
}

void board_undo(struct board *b)
{
    uint32_t node = b->order[--b->placed], host = b->host_at[node];

    b->host_at[node] = b->node_of[host] = CABLING_NONE;
    b->mismatches -= board_price(b, node, host);
    count_beside(b, node, UINT32_MAX); /* one less */
}

void board_clear(struct board *b)
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

void board_improve(struct board *b, const uint32_t *fixed)
{
    while (b->mismatches > 0 && improve_once(b, fixed))
        continue;
}
