/* Nodes that no link leads to, and for how long that has been so: who is taken for dead, and who is not
 * waited for any longer. */
#include <stdlib.h>

#include "daemon/exchange/internal.h"

int absent_init(struct exchanges *all)
{
    all->absent = calloc(router_torus(all->set.router)->nodes, sizeof *all->absent);
    return all->absent != NULL ? 0 : -1;
}

/* Since now, unless it was so before. */
static void note(uint64_t *since, bool is_so, uint64_t now)
{
    if (!is_so)
        *since = ROUTER_NEVER;
    else if (*since == ROUTER_NEVER)
        *since = now;
}

void absent_note(struct exchanges *all)
{
    const struct topology *topology = router_topology(all->set.router);
    uint64_t now = router_now(all->set.router);

    for (uint32_t rank = 0; rank < topology->torus->nodes; rank++)
        note(&all->absent[rank].down_since, topology_node_down(topology, rank), now);
}

uint64_t absent_dead_at(const struct exchanges *all, uint32_t rank)
{
    uint64_t since = all->absent[rank].down_since;

    return since != ROUTER_NEVER ? since + GONE_TIME : ROUTER_NEVER;
}

uint64_t absent_naming_time(const struct exchanges *all)
{
    return router_heartbeat(all->set.router) + 1 * SECONDS;
}
