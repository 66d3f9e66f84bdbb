/* Barriers: a node's client waits until a client has entered the barrier of that name at every
 * node.
 *
 * It is an exchange without blocks, which node BARRIER_ROOT prepares when it is entered there; a
 * node is ready when it is entered here. So `go` means that all have entered. A client that is
 * earlier than the root's `prepare` waits with an exchange that only this node knows of, and which
 * then becomes the root's. Faults, deadlines and clients that leave end a barrier as they end any
 * exchange: everywhere, with the same words. */
#include <stdio.h>
#include <string.h>

#include "daemon/exchange/internal.h"

/* The barrier of this name that is prepared or waited for here; NULL: none. */
struct exchange *barrier_preparing(struct exchanges *all, const char *name)
{
    struct exchange *x = all->active;

    while (x != NULL && (x->operation != OPERATION_BARRIER || x->state != EXCHANGE_PREPARING ||
                         strcmp(x->barrier, name) != 0))
        x = x->hh.next;
    return x;
}

/* A client enters a barrier that the root has prepared already. */
int barrier_enter(struct exchange *x, uint64_t timeout_ns, const struct exchange_client *client,
                  struct error *e)
{
    uint64_t now = router_now(x->all->set.router);

    if (x->has_client)
        return error_set(e, ERROR_REFUSED, "barrier \"%s\" has been entered at this node already",
                         x->barrier);
    x->has_client = true;
    x->client = *client;
    if (timeout_ns > 0 && timeout_ns < x->deadline - now) {
        x->timeout_ns = timeout_ns;
        x->deadline = now + timeout_ns;
    }
    x->waiting &= ~OWN_PART;
    exchange_advance(x);
    return 0;
}

/* The root prepares a barrier: the one that has been entered here, or NULL. */
struct exchange *barrier_prepared(struct exchanges *all, const Peer__Prepare *prepare,
                                  const char *id)
{
    struct exchange *x = barrier_preparing(all, prepare->barrier);

    if (x == NULL || !x->entered)
        return NULL;
    x->entered = false;
    HASH_DEL(all->active, x);
    exchange_rename(x, prepare->handle, id, prepare->root);
    HASH_ADD(hh, all->active, handle, sizeof x->handle, x);
    return x;
}
