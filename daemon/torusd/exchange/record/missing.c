/* Finds the nodes that have not entered a barrier or group. */
#include "daemon/torusd/exchange/record/missing.h"

#include <stdio.h>

#include "daemon/torusd/exchange/record/absent.h"
#include "daemon/torusd/exchange/record/avoided.h"
#include "daemon/torusd/exchange/record/job.h"
#include "daemon/torusd/exchange/record/membership.h"
#include "daemon/torusd/exchange/record/predicates.h"

/* Whole branches, because a child reports only when all nodes below it have entered. */
static bool is_owed(const struct job *j, uint32_t node)
{
    const int port = avoided_branch(j->attempt, node);

    return port >= 0 && (j->attempt->owed & 1u << port) != 0;
}

static bool is_unreachable(const struct job *j, uint32_t node)
{
    return absent_is_unreachable(j->exchanges, node);
}

static uint32_t list_nodes(const struct job *j, bool (*is_one)(const struct job *, uint32_t),
                           char *list, size_t size)
{
    const uint32_t all = router_torus(j->exchanges->set.router)->nodes;
    uint32_t nodes = 0;
    size_t used = 0;

    for (uint32_t node = 0; node < all; node++) {
        if (!is_one(j, node))
            continue;
        if (used < size - 16) /* leave room for a rank and the end */
            used += (size_t)snprintf(list + used, size - used, "%s%u", used > 0 ? ", " : "", node);
        else if (list[used - 1] != '.')
            used += (size_t)snprintf(list + used, size - used, " ...");
        nodes++;
    }
    return nodes;
}

uint32_t exchange_missing(const struct job *j, char *list, size_t size)
{
    list[0] = '\0';
    if (!kind_of_spec(&j->spec)->is_entered)
        return 0;
    if (j->state == JOB_ENTERED) {
        uint32_t root = membership_root(j->exchanges, &j->spec);
        if (root == TORUS_NO_NODE)
            return 0;
        return (void)snprintf(list, size, "%u", root), 1;
    }
    if (j->state == JOB_WAITING && job_waits_for_nodes(j))
        return list_nodes(j, is_unreachable, list, size);
    if (!job_is_under_way(j) || !attempt_awaits_entry(j->attempt))
        return 0;
    return list_nodes(j, is_owed, list, size);
}
