/* Nodes that no link leads to, and since when: which nodes count as dead, and which nodes are not waited for. */
#include "daemon/torusd/exchange/record/absent.h"

#include <stdlib.h>

#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/exchange/record/exchange_record.h"
#include "daemon/torusd/exchange/record/membership.h"

/* A node counts as dead when none of its links has been up for this time. A lost connection is replaced within
 * that time (BACKOFF_FIRST of the router, and the handshake), and a node may have only one link. */
#define GONE_TIME (150 * MILLISECONDS)

/* Sets *since to `now` when the condition becomes true, and to ROUTER_NEVER when it is false. */
static void note_since(uint64_t *since, bool is_so, uint64_t now)
{
    if (!is_so)
        *since = ROUTER_NEVER;
    else if (*since == ROUTER_NEVER)
        *since = now;
}

/* Without memory, all times stay as they were. */
static void note_unreachable(struct exchanges *exchanges, uint64_t now)
{
    uint32_t nodes = router_torus(exchanges->set.router)->nodes;
    bool whole = topology_whole(router_topology(exchanges->set.router));
    struct damage d;

    if (!whole && membership_view(exchanges, (struct left_out){.down = true}, &d, NULL) != 0)
        return;
    for (uint32_t rank = 0; rank < nodes; rank++)
        note_since(&exchanges->absent[rank].unreachable_since, !whole && d.gone[rank], now);
    exchanges->may_be_cut_off = !whole && !membership_are_down(exchanges, &d);
    if (!whole)
        damage_free(&d);
}

void absent_note(struct exchanges *exchanges)
{
    const struct topology *topology = router_topology(exchanges->set.router);
    uint64_t now = router_now(exchanges->set.router);

    for (uint32_t rank = 0; rank < topology->torus->nodes; rank++)
        note_since(&exchanges->absent[rank].down_since, topology_node_down(topology, rank), now);
    note_unreachable(exchanges, now);
}

int absent_init(struct exchanges *exchanges)
{
    exchanges->absent =
        calloc(router_torus(exchanges->set.router)->nodes, sizeof *exchanges->absent);
    if (exchanges->absent == NULL)
        return -1;
    absent_note(exchanges); /* nodes that are absent now have been so since the start */
    return 0;
}

bool absent_is_unreachable(const struct exchanges *exchanges, uint32_t rank)
{
    return exchanges->absent[rank].unreachable_since != ROUTER_NEVER;
}

bool absent_is_down(const struct exchanges *exchanges, uint32_t rank)
{
    return exchanges->absent[rank].down_since != ROUTER_NEVER ||
           (!exchanges->may_be_cut_off && absent_is_unreachable(exchanges, rank));
}

uint64_t absent_dead_at(const struct exchanges *exchanges, uint32_t rank)
{
    uint64_t since = exchanges->absent[rank].down_since;

    return since != ROUTER_NEVER ? since + GONE_TIME : ROUTER_NEVER;
}

uint64_t absent_given_up_at(const struct exchanges *exchanges, uint32_t rank)
{
    if (!absent_is_unreachable(exchanges, rank))
        return ROUTER_NEVER;
    return exchanges->absent[rank].unreachable_since +
           (absent_is_down(exchanges, rank) ? GONE_TIME : absent_report_time(exchanges));
}

uint64_t absent_report_time(const struct exchanges *exchanges)
{
    return router_heartbeat(exchanges->set.router) + 1 * SECONDS;
}
