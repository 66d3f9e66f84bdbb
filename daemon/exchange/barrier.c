/* Barriers, and how groups are opened: a node's client waits until a client has entered the barrier of
 * that name at every node.
 *
 * It is an exchange without blocks, which node BARRIER_ROOT prepares when it is entered there; a
 * node is ready when it is entered here. So `go` means that all have entered. A client that is
 * earlier than the root's `prepare` waits with an exchange that only this node knows of (ENTERED),
 * and which then becomes the root's. Faults, deadlines and clients that leave end a barrier as they
 * end any exchange: everywhere, with the same error. A link that goes down before all have entered does
 * not, nor a node without memory for a group: the root takes its `prepare` back (retry.c), and who waits
 * for it waits for the next.
 *
 * A group that shrinks is prepared by the first node that is left. If that goes down before all have
 * entered, or one before it comes up, another node does, as soon as it hears of it: it turns from ENTERED
 * to WAITING, or back. What a root has prepared that is not the first node any more is over. */
#include <string.h>

#include "daemon/exchange/internal.h"

/* Of a node that is not the root; or it has found a fault since. */
#define BEFORE_GO (1u << EXCHANGE_PREPARING | 1u << EXCHANGE_READY | 1u << EXCHANGE_FAILING)

/* Its group, if it is one, has been open: all have entered. */
static bool has_gone(const struct exchange *x)
{
    return x->rounds.first_went != 0;
}

bool exchange_may_have_gone(const struct exchange *x)
{
    return has_gone(x) || x->resumes[0] != '\0' || x->entered.ready;
}

static bool is_of(const struct exchange *x, const struct spec *spec)
{
    return x->spec.operation == spec->operation && x->spec.shrink == spec->shrink && !has_gone(x) &&
           x->resumes[0] == '\0' && strcmp(x->spec.barrier, spec->barrier) == 0;
}

static struct exchange *find(struct exchanges *all, const struct spec *spec, uint32_t states)
{
    struct exchange *x = all->active;

    while (x != NULL && (!is_of(x, spec) || (states & 1u << x->state) == 0))
        x = x->next;
    return x;
}

uint32_t barrier_root(const struct exchanges *all, const struct spec *spec)
{
    uint32_t root = BARRIER_ROOT;
    struct damage d;
    struct error e;

    if (!spec->shrink)
        return root;
    if (around_view(all, (struct left_out){.down = true}, &d, &e) != 0)
        return TORUS_NO_NODE;
    while (d.gone[root]) /* this node is not */
        root++;
    damage_free(&d);
    return root;
}

/* The barrier of this name that is prepared or waited for here; NULL: none. */
struct exchange *barrier_preparing(struct exchanges *all, const struct spec *spec)
{
    return find(all, spec,
                1u << EXCHANGE_WAITING | 1u << EXCHANGE_ENTERED | 1u << EXCHANGE_PREPARING);
}

/* A client enters a barrier that the root has prepared already. */
int barrier_enter(struct exchange *x, const struct spec *wanted,
                  const struct exchange_client *client, struct error *e)
{
    uint64_t now = router_now(router_of(x)), timeout_ns = wanted->timeout_ns;

    if (x->client_state != CLIENT_NONE)
        return error_set(e, ERROR_REFUSED, "%s \"%s\" has been entered at this node already",
                         operation_name(x->spec.operation), x->spec.barrier);
    x->client_state = CLIENT_WAITING;
    x->client = *client;
    if (x->own.reserved == 0)
        x->user = client->user;
    x->entered.timeout_ns = timeout_ns > 0 ? timeout_ns : SPEC_LONGEST_TIMEOUT;
    x->entered.deadline = now + x->entered.timeout_ns;
    if (timeout_ns > 0 && timeout_ns < x->deadline - now) {
        x->timeout_ns = timeout_ns;
        x->deadline = now + timeout_ns;
    }
    return 0;
}

/* Under a name of this node's own again. Returns 0, or -1 if there is no memory. */
static int enter_again(struct exchange *x)
{
    char id[EXCHANGE_ID_SIZE];
    uint32_t handle;

    memcpy(x->entered.former, x->id, sizeof x->entered.former);
    exchange_new_name(x->all, id, &handle);
    if (exchange_rename(x, handle, id, rank_of(x)) != 0)
        return -1;
    around_drop(x);
    tree_node(torus_of(x), rank_of(x), rank_of(x), &x->tree);
    x->fault = UNSEEN_FAULT;
    x->failure.code = ERROR_NONE;
    x->verdict_heard = x->taken_back = x->before_go = false;
    x->timeout_ns = x->entered.timeout_ns;
    x->deadline = x->entered.deadline;
    exchange_enter(x, EXCHANGE_ENTERED);
    return 0;
}

bool barrier_take_back(struct exchange *x)
{
    if (standing_suspend(x))
        return true;
    if (!spec_is_entered(&x->spec) || (BEFORE_GO & 1u << x->state) == 0 || has_gone(x) ||
        x->client_state != CLIENT_WAITING)
        return false;
    if (enter_again(x) == 0)
        return true;
    (void)error_set(&x->failure, ERROR_MEMORY, "out of memory for a %s",
                    operation_name(x->spec.operation));
    return false;
}

/* This node prepares it, or is about to. */
static bool leads(const struct exchange *x)
{
    return x->state == EXCHANGE_WAITING || retry_may(x);
}

/* Another node is to prepare it. */
static void yield(struct exchange *x)
{
    struct error busy;

    (void)error_set(&busy, ERROR_BUSY, "another node begins it");
    if (exchange_has_begun(x))
        verdict_send(x, &busy);
    if (enter_again(x) != 0) {
        (void)error_set(&busy, ERROR_MEMORY, "out of memory for a %s",
                        operation_name(x->spec.operation));
        exchange_fail(x, &busy);
    }
}

void barrier_lead(struct exchange *x)
{
    struct exchanges *all = x->all;

    if (!spec_is_entered(&x->spec) || !x->spec.shrink || standing_is_one(x) ||
        (!leads(x) && x->state != EXCHANGE_ENTERED))
        return;
    uint32_t root = barrier_root(all, &x->spec);
    if (root == TORUS_NO_NODE || leads(x) == (root == rank_of(x)))
        return;
    if (leads(x)) {
        yield(x);
        return;
    }
    x->goes_around = true;
    x->turn = (struct turn){.since = router_now(router_of(x))};
    exchange_enter(x, EXCHANGE_WAITING);
    all->turns_due = true;
}

/* The attempt of this root, or of any (TORUS_NO_NODE), at a barrier that is known here, before `go`;
 * NULL: none. */
static struct exchange *attempt(struct exchanges *all, const struct spec *spec, uint32_t root)
{
    struct exchange *x = all->active;

    while (x != NULL && (!is_of(x, spec) || (BEFORE_GO & 1u << x->state) == 0 ||
                         (root != TORUS_NO_NODE && x->root != root) || exchange_is_root(x)))
        x = x->next;
    return x;
}

int barrier_check_id(struct exchanges *all, const struct spec *spec, const char *id,
                     struct error *e)
{
    const struct exchange *x = attempt(all, spec, exchange_root_of(id));

    if (x == NULL || !exchange_is_before(id, x->id))
        return 0;
    return error_set(e, ERROR_BUSY, "%s \"%s\" has begun anew as %s",
                     operation_name(spec->operation), spec->barrier, x->id);
}

/* The root prepares a barrier: the one that has been entered here, or NULL. The attempts before this one
 * it has taken back, by a verdict that may be slower, over other links. Those of other roots of a group
 * that shrinks are over, too, also this node's own: that this one is the first node that is left, both
 * have found. */
struct exchange *barrier_prepared(struct exchanges *all, const struct spec *spec, uint32_t root)
{
    struct exchange *x = spec->shrink ? all->active : NULL;

    while (x != NULL && (!is_of(x, spec) || !leads(x)))
        x = x->next;
    if (x != NULL)
        yield(x);
    while ((x = attempt(all, spec, spec->shrink ? TORUS_NO_NODE : root)) != NULL)
        if (!barrier_take_back(x)) {
            if (x->client_state != CLIENT_WAITING)
                (void)error_set(&x->failure, ERROR_BUSY, "it has begun anew");
            exchange_enter(x, EXCHANGE_FAILED);
        }
    return find(all, spec, 1u << EXCHANGE_ENTERED);
}

bool barrier_differs(struct exchange *x, const struct spec *entered, const struct spec *prepared)
{
    struct error e;

    if (entered->unchecked == prepared->unchecked && entered->wait == prepared->wait)
        return false;
    if (entered->wait != prepared->wait)
        (void)error_set(
            &e, ERROR_USAGE,
            "node %u %s nodes that are down, node %u %s: the same has to be asked for at all nodes",
            rank_of(x), entered->wait ? "waits for" : "does not wait for", x->root,
            prepared->wait ? "does" : "does not");
    else
        (void)error_set(&e, ERROR_USAGE, "node %u opens it with%s digests, node %u with%s",
                        rank_of(x), entered->unchecked ? "out" : "", x->root,
                        prepared->unchecked ? "out" : "");
    exchange_fail(x, &e);
    return true;
}
