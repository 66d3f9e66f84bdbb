/* Barriers: a node's client waits until a client has entered the barrier of that name at every
 * node.
 *
 * It is an exchange without blocks, which node BARRIER_ROOT prepares when it is entered there; a
 * node is ready when it is entered here. So `go` means that all have entered. A client that is
 * earlier than the root's `prepare` waits with an exchange that only this node knows of (ENTERED),
 * and which then becomes the root's. Faults, deadlines and clients that leave end a barrier as they
 * end any exchange: everywhere, with the same error. */
#include <string.h>

#include "daemon/exchange/internal.h"

static struct exchange *find(struct exchanges *all, const char *name, uint32_t states)
{
    struct exchange *x = all->active;

    while (x != NULL && (x->spec.operation != OPERATION_BARRIER || (states & 1u << x->state) == 0 ||
                         strcmp(x->spec.barrier, name) != 0))
        x = x->next;
    return x;
}

/* The barrier of this name that is prepared or waited for here; NULL: none. */
struct exchange *barrier_preparing(struct exchanges *all, const char *name)
{
    return find(all, name,
                1u << EXCHANGE_WAITING | 1u << EXCHANGE_ENTERED | 1u << EXCHANGE_PREPARING);
}

/* A client enters a barrier that the root has prepared already. */
int barrier_enter(struct exchange *x, uint64_t timeout_ns, const struct exchange_client *client,
                  struct error *e)
{
    uint64_t now = router_now(router_of(x));

    if (x->client_state != CLIENT_NONE)
        return error_set(e, ERROR_REFUSED, "barrier \"%s\" has been entered at this node already",
                         x->spec.barrier);
    x->client_state = CLIENT_WAITING;
    x->client = *client;
    if (timeout_ns > 0 && timeout_ns < x->deadline - now) {
        x->timeout_ns = timeout_ns;
        x->deadline = now + timeout_ns;
    }
    return 0;
}

/* The root prepares a barrier: the one that has been entered here, or NULL. */
struct exchange *barrier_prepared(struct exchanges *all, const char *name)
{
    return find(all, name, 1u << EXCHANGE_ENTERED);
}
