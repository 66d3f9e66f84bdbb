/* Nodes that no link leads to, and since when: which nodes count as dead, and which nodes are not waited for. */
#include "daemon/exchange/record/absent.h"

#include <stdlib.h>

#include "daemon/exchange/record/exchange_record.h"
#include "daemon/exchange/record/membership.h"
#include "daemon/schedule/damage.h"

/* How long none of a node's links is up before it counts as dead. A lost connection is replaced within that
 * time (BACKOFF_FIRST of the router, and the handshake), and a node may have only one link. */
#define GONE_TIME (150 * MILLISECONDS)

/* Sets *since to `now` when the condition becomes true, and to ROUTER_NEVER when it is false. */
static void note(uint64_t *since, bool is_so, uint64_t now)
{
    if (!is_so)
        *since = ROUTER_NEVER;
    else if (*since == ROUTER_NEVER)
        *since = now;
}

/* Without memory, all times stay as they were. */
static void note_unreachable(struct exchanges *all, uint64_t now)
{
    uint32_t nodes = router_torus(all->set.router)->nodes;
    bool whole = topology_whole(router_topology(all->set.router));
    struct damage d;

    if (!whole && membership_view(all, (struct left_out){.down = true}, &d, NULL) != 0)
        return;
    for (uint32_t rank = 0; rank < nodes; rank++)
        note(&all->absent[rank].unreachable_since, !whole && d.gone[rank], now);
    all->apart = !whole && !membership_are_down(all, &d);
    if (!whole)
        damage_free(&d);
}

void absent_note(struct exchanges *all)
{
    const struct topology *topology = router_topology(all->set.router);
    uint64_t now = router_now(all->set.router);

    for (uint32_t rank = 0; rank < topology->torus->nodes; rank++)
        note(&all->absent[rank].down_since, topology_node_down(topology, rank), now);
    note_unreachable(all, now);
}

int absent_init(struct exchanges *all)
{
    all->absent = calloc(router_torus(all->set.router)->nodes, sizeof *all->absent);
    if (all->absent == NULL)
        return -1;
    absent_note(all); /* nodes that are absent now have been so since the start */
    return 0;
}

bool absent_is_unreachable(const struct exchanges *all, uint32_t rank)
{
    return all->absent[rank].unreachable_since != ROUTER_NEVER;
}

bool absent_is_down(const struct exchanges *all, uint32_t rank)
{
    return all->absent[rank].down_since != ROUTER_NEVER ||
           (!all->apart && absent_is_unreachable(all, rank));
}

uint64_t absent_dead_at(const struct exchanges *all, uint32_t rank)
{
    uint64_t since = all->absent[rank].down_since;

    return since != ROUTER_NEVER ? since + GONE_TIME : ROUTER_NEVER;
}

uint64_t absent_given_up_at(const struct exchanges *all, uint32_t rank)
{
    if (!absent_is_unreachable(all, rank))
        return ROUTER_NEVER;
    return all->absent[rank].unreachable_since +
           (absent_is_down(all, rank) ? GONE_TIME : absent_naming_time(all));
}

uint64_t absent_naming_time(const struct exchanges *all)
{
    return router_heartbeat(all->set.router) + 1 * SECONDS;
}
