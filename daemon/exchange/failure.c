/* How an exchange fails, everywhere with the same words. The root alone decides: whoever cannot go
 * on tells it (an Abort that is not final, flooded, since the tree may be cut), and it floods the
 * verdict. A node that hears no verdict ends by itself after a while. */
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/text.h"
#include "daemon/exchange/internal.h"

/* From the first link of a node that goes down until all of them have been reported: what its
 * neighbours have heard last may be a heartbeat apart, and not all of them notice at once. */
#define NAMING_TIME (ROUTER_HEARTBEAT + 1 * SECONDS)
/* How long a node waits for the root's verdict. */
#define VERDICT_TIME (4 * SECONDS)
/* Failures of exchanges that are not known here: at most so many from a link in so long. */
#define UNHEARD_MOST 32u
#define UNHEARD_TIME (1 * SECONDS)

static void flood_abort(struct exchange *x, int except, bool final)
{
    Peer__Abort message = PEER__ABORT__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    message.exchange = x->handle;
    message.id = x->id;
    message.code = (uint32_t)x->failure.code;
    message.reason = x->failure.text;
    message.final = final;
    head.kind_case = PEER__HEAD__KIND_ABORT;
    head.abort = &message;
    if (final)
        x->verdict_passed = true;
    else
        x->word_passed = true;
    router_flood(x->all->set.router, except, &head);
}

/* Which of several repetitions it is that fails: the root's word, so that all say the same. */
static void name_repetition(struct exchange *x)
{
    if (x->repeat > 1 && x->state == EXCHANGE_RUNNING)
        (void)error_wrap(&x->failure, "repetition %u of %u", x->repetition + 1, x->repeat);
}

/* The child port of this exchange's tree that a node is below, -1 for this node. */
static int branch_of(const struct exchange *x, const struct torus *t, uint32_t node)
{
    uint32_t here = router_rank(x->all->set.router);
    struct tree_node at;
    int port = -1;

    while (node != here) {
        tree_node(t, x->root, node, &at);
        node = torus_neighbour(t, node, (unsigned)at.parent);
        port = (int)torus_port_opposite((unsigned)at.parent);
    }
    return port;
}

/* A barrier that not all have come to: which nodes the root has not heard of. A child is heard when
 * all below it have come, so these are whole branches. */
static void name_missing(struct exchange *x)
{
    const struct torus *t = router_torus(x->all->set.router);
    uint32_t nodes = 0;
    char list[128];
    size_t used = 0;

    if (x->operation != OPERATION_BARRIER || x->state != EXCHANGE_PREPARING ||
        x->failure.code != ERROR_TIMEOUT)
        return;
    if (x->entered) {
        (void)error_wrap(&x->failure, "node %u has not come", BARRIER_ROOT);
        return;
    }
    for (uint32_t node = 0; node < t->nodes; node++) {
        int port = branch_of(x, t, node);
        if (port < 0 || (x->waiting & 1u << port) == 0)
            continue;
        if (used < sizeof list - 16) /* room for a rank, and for the end */
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%u", used > 0 ? ", " : "",
                                     node);
        else if (list[used - 1] != '.')
            used += (size_t)snprintf(list + used, sizeof list - used, " ...");
        nodes++;
    }
    if (nodes == 1)
        (void)error_wrap(&x->failure, "node %s has not come", list);
    else if (nodes > 1)
        (void)error_wrap(&x->failure, "not all of nodes %s have come", list);
}

void failure_here(struct exchange *x, const struct error *e)
{
    if (exchange_over(x) || x->state == EXCHANGE_FAILING || x->state == EXCHANGE_COMMITTING)
        return;
    x->failure = *e;
    if (exchange_is_root(x)) {
        name_repetition(x);
        name_missing(x);
        if (!x->entered) /* else nobody knows of it */
            flood_abort(x, -1, true);
        exchange_end(x, EXCHANGE_FAILED);
        return;
    }
    log_warning("exchange %s: %s", x->id, e->text);
    x->state = EXCHANGE_FAILING;
    x->fault_at = router_now(x->all->set.router);
    flood_abort(x, -1, false);
}

/* Its prepare is still on its way here, or never comes: remember it as failed. That is rare; who
 * tells of many would make all nodes forget the failures they know, and pass them on for ever. */
static struct exchange *add_unheard_of(struct exchanges *all, unsigned port, uint32_t handle,
                                       const char *id, struct error *e)
{
    uint64_t now = router_now(all->set.router);
    struct exchange *x;

    if (now >= all->unheard_since[port] + UNHEARD_TIME) {
        all->unheard_since[port] = now;
        all->unheard_of[port] = 0;
    }
    if (++all->unheard_of[port] > UNHEARD_MOST) {
        (void)error_set(e, ERROR_PROTOCOL, "more than %u failures a second of unknown exchanges",
                        UNHEARD_MOST);
        return NULL;
    }
    x = exchange_add(all, handle, id, TORUS_NO_NODE);
    if (x == NULL)
        (void)error_set(e, ERROR_MEMORY, "no memory for an exchange");
    else
        x->tree.parent = 0;
    return x;
}

int failure_heard(struct exchanges *all, unsigned port, const Peer__Abort *abort, struct error *e)
{
    uint32_t handle = abort->exchange;
    struct exchange *x = exchange_find(all, handle);
    char id[EXCHANGE_ID_SIZE];

    text_printable(id, sizeof id, abort->id);
    if (x == NULL) {
        x = add_unheard_of(all, port, handle, id, e);
        if (x == NULL)
            return -1;
    } else if (strcmp(x->id, id) != 0) {
        return 0;
    }
    if (abort->final ? x->verdict_passed : x->word_passed)
        return 0;
    bool decided = exchange_over(x) || x->state == EXCHANGE_COMMITTING;
    if (!decided || x->algorithm == NULL || x->state == EXCHANGE_COMMITTED) {
        x->failure.code = abort->code <= ERROR_IN_DOUBT ? (enum error_code)abort->code : ERROR_IO;
        text_printable(x->failure.text, sizeof x->failure.text, abort->reason);
    }
    if (exchange_is_root(x)) {
        x->word_passed = true;
        if (!decided) {
            name_repetition(x);
            name_missing(x);
            flood_abort(x, -1, true);
            exchange_end(x, EXCHANGE_FAILED);
        }
        return 0;
    }
    flood_abort(x, (int)port, abort->final);
    /* Without outputs a node is done with its own part before the others are; it learns here that
     * the whole has failed. */
    if (abort->final && (!decided || (x->state == EXCHANGE_COMMITTED && x->to[0] == '\0')))
        exchange_end(x, EXCHANGE_FAILED);
    else if (x->algorithm == NULL && !exchange_over(x))
        exchange_end(x, EXCHANGE_FAILED);
    return 0;
}

/* It is down, or it is up again and remembers nothing. */
static bool root_gone(const struct exchange *x)
{
    const struct topology *topology = router_topology(x->all->set.router);
    uint64_t boot = topology->entry[x->root].boot;
    unsigned root, began_with;

    if (exchange_is_root(x))
        return false;
    return topology_node_down(topology, x->root) ||
           (boot != x->root_boot && sscanf(x->id, "%u-%x-", &root, &began_with) == 2 &&
            (uint32_t)boot != began_with);
}

static void root_is_gone(const struct exchange *x, struct error *e)
{
    (void)error_set(e, ERROR_LINK, "node %u, where the exchange began, went down", x->root);
}

/* The verdict on a fault, as soon as it can be given. */
static void judge_fault(struct exchange *x, uint64_t now)
{
    const struct topology *topology = router_topology(x->all->set.router);
    uint32_t down = topology_first_down(topology);
    bool root_down = root_gone(x);
    struct error e = x->fault;

    if (x->state == EXCHANGE_COMMITTING) {
        if (now >= x->fault_at + VERDICT_TIME) {
            x->unconfirmed = true;
            exchange_end(x, EXCHANGE_COMMITTED);
        }
        return;
    }
    if (root_down)
        root_is_gone(x, &e);
    else if (down != TORUS_NO_NODE)
        (void)error_set(&e, ERROR_LINK, "node %u is down: none of its links is up", down);
    if (x->state == EXCHANGE_DONE && x->to[0] != '\0' && !exchange_is_root(x)) {
        /* The root may have recorded the commit. */
        if (root_down || now >= x->fault_at + VERDICT_TIME) {
            x->failure = e;
            exchange_end(x, EXCHANGE_IN_DOUBT);
        }
        return;
    }
    if (exchange_is_root(x)) {
        if (down != TORUS_NO_NODE || now >= x->fault_at + NAMING_TIME)
            failure_here(x, &e);
    } else if (root_down) {
        x->failure = e;
        exchange_end(x, EXCHANGE_FAILED);
    } else if (now >= x->fault_at + VERDICT_TIME) {
        x->failure = e;
        flood_abort(x, -1, false);
        exchange_end(x, EXCHANGE_FAILED);
    }
}

/* A port of ours with a link that is down, or -1. */
static int port_down(const struct exchange *x, unsigned from)
{
    const struct router *r = x->all->set.router;
    uint32_t up = router_topology(r)->entry[router_rank(r)].up;

    for (unsigned port = from; port < torus_ports(router_torus(r)); port++)
        if ((up & 1u << port) == 0 &&
            torus_neighbour(router_torus(r), router_rank(r), port) != TORUS_NO_NODE)
            return (int)port;
    return -1;
}

bool failure_own_link_down(const struct exchange *x, struct error *e)
{
    const struct router *r = x->all->set.router;
    char name[TORUS_PORT_NAME_SIZE];
    int port = port_down(x, 0);

    if (port < 0)
        return false;
    (void)error_set(e, ERROR_LINK, "its link %s to node %u is down",
                    torus_port_name((unsigned)port, name),
                    torus_neighbour(router_torus(r), router_rank(r), (unsigned)port));
    return true;
}

void failure_topology(struct exchange *x)
{
    const struct topology *topology = router_topology(x->all->set.router);
    uint64_t now = router_now(x->all->set.router);
    char text[200];

    if (exchange_over(x))
        return;
    for (int port = port_down(x, 0); port >= 0; port = port_down(x, (unsigned)port + 1)) {
        x->lost |= 1u << port;
        if (x->engine != NULL)
            engine_lose_port(x->engine, (unsigned)port);
    }
    if (x->state == EXCHANGE_FAILING) {
        if (root_gone(x)) {
            root_is_gone(x, &x->failure);
            exchange_end(x, EXCHANGE_FAILED);
        }
        return;
    }
    if (x->fault_at == ROUTER_NEVER) {
        if (topology_fault(topology, 0, text, sizeof text))
            (void)error_set(&x->fault, ERROR_LINK, "%s", text);
        else if (!root_gone(x))
            return;
        x->fault_at = now;
    }
    judge_fault(x, now);
}

uint64_t failure_deadline(const struct exchange *x)
{
    uint64_t verdict = ROUTER_NEVER;

    if (x->fault_at != ROUTER_NEVER)
        verdict =
            x->fault_at +
            (exchange_is_root(x) && x->state != EXCHANGE_COMMITTING ? NAMING_TIME : VERDICT_TIME);
    if (x->state == EXCHANGE_FAILING || x->state == EXCHANGE_COMMITTING)
        return verdict;
    return verdict < x->deadline ? verdict : x->deadline;
}

void failure_tick(struct exchange *x, uint64_t now)
{
    struct error e;
    char where[160];

    if (x->state == EXCHANGE_FAILING) {
        if (now >= x->fault_at + VERDICT_TIME)
            exchange_end(x, EXCHANGE_FAILED);
        return;
    }
    if (x->fault_at != ROUTER_NEVER)
        judge_fault(x, now);
    if (exchange_over(x) || now < x->deadline || x->state == EXCHANGE_COMMITTING)
        return;
    if (x->state == EXCHANGE_DONE && x->to[0] != '\0' && !exchange_is_root(x)) {
        (void)error_set(&x->failure, ERROR_IN_DOUBT, "its root did not say within the timeout");
        exchange_end(x, EXCHANGE_IN_DOUBT);
        return;
    }
    if (x->engine != NULL && x->state == EXCHANGE_RUNNING)
        engine_describe(x->engine, where, sizeof where);
    else
        (void)snprintf(where, sizeof where, "%s", exchange_state_name(x->state));
    (void)error_set(&e, ERROR_TIMEOUT,
                    "not finished within %.1f s; node %u: round %llu of %llu, %s",
                    (double)x->timeout_ns / 1e9, router_rank(x->all->set.router),
                    (unsigned long long)(x->round - exchange_first_round(x)) + 1,
                    (unsigned long long)x->rounds, where);
    failure_here(x, &e);
}
