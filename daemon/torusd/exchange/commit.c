/* How a finished attempt with a result is committed. The root records its decision. From then on every node
 * puts its output under its final name, during the wave or when it can, and confirms that to the root. */
#include "daemon/torusd/exchange/commit.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/abort.h"
#include "daemon/torusd/exchange/decisions.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/local_resources.h"
#include "daemon/torusd/exchange/membership.h"
#include "daemon/torusd/exchange/status.h"
#include "daemon/torusd/exchange/tree_messages.h"
#include "proto/text.h"

static void send_commit(struct attempt *x)
{
    const struct peer_message message = {.kind = PEER_COMMIT, .commit = {x->handle}};

    tree_messages_to_children(x, &message);
}

/* Starts to commit. `wave`: the children hear of the decision from this node, and confirm to it. */
static void begin_commit(struct attempt *x, bool wave)
{
    attempt_enter(x, EXCHANGE_COMMITTING);
    if (attempt_is_root(x) && attempt_waits_for_nodes(x) && x->spec.timeout_ns == 0)
        x->deadline = router_now(router_of(x)) + LONGEST_WAIT;
    if (!attempt_is_root(x)) {
        tree_messages_begin_wave(x);
        x->awaited &= wave ? ~x->fault.lost : OWN_PART;
        x->deadline = router_now(router_of(x)) + ABORT_TIME;
    }
    commit_advance(x);
}

/* Starts to commit because the root's outcome arrived outside the commit wave. Children then confirm by
 * themselves. */
static void commit_begin(struct attempt *x)
{
    begin_commit(x, false);
}

static void on_recorded(void *context, const char *text, const struct error *e)
{
    struct exchanges *exchanges = context;
    struct attempt *x = attempt_find_text(exchanges, text);

    if (x == NULL || x->state != EXCHANGE_DECIDING)
        return;
    if (e != NULL) {
        struct error why = *e;
        decision_drop(exchanges, decision_find(exchanges, &x->id));
        (void)error_wrap(&why, "the decision to commit could not be recorded");
        abort_send(x, &why);
        x->failure = why;
        attempt_end(x, EXCHANGE_FAILED);
        return;
    }
    send_commit(x);
    if (abort_is_cut(x)) /* the tree is cut, so some nodes hear of it by reminders only */
        decision_remind_soon(exchanges, decision_find(exchanges, &x->id));
    begin_commit(x, true);
}

void commit_decide(struct attempt *x)
{
    const struct storage *storage = x->exchanges->set.storage;
    uint64_t remind_at = router_now(router_of(x)) + ABORT_TIME; /* the wave is usually faster */
    struct decision *decision = decision_add(x->exchanges, &x->id, remind_at);
    struct error e;

    if (decision == NULL) {
        (void)error_set(&e, ERROR_MEMORY, "out of memory for the decision to commit");
        attempt_fail(x, &e);
        return;
    }
    for (uint32_t rank = 0; rank < torus_of(x)->nodes; rank++)
        if (avoided_is_left_out(x, rank))
            decision_note(decision, rank);
    attempt_enter(x, EXCHANGE_DECIDING);
    storage->record_commit(storage->context, x->id.text, on_recorded, x->exchanges);
}

static void send_confirmations(struct attempt *x)
{
    if (x->confirmed_count > 0)
        decision_confirm(x->exchanges, &x->id, x->confirmed, x->confirmed_count, "");
    x->confirmed_count = 0;
}

/* Collects confirmations, so that a part of the tree confirms with one message. */
static void collect_confirmations(struct attempt *x, const uint32_t *rank, size_t count)
{
    uint32_t nodes = torus_of(x)->nodes;

    if (x->confirmed == NULL)
        x->confirmed = calloc(nodes, sizeof *x->confirmed);
    if (x->confirmed == NULL || x->confirmed_count + count > nodes) {
        decision_confirm(x->exchanges, &x->id, rank, count, "");
        return;
    }
    memcpy(x->confirmed + x->confirmed_count, rank, count * sizeof *rank);
    x->confirmed_count += (uint32_t)count;
}

static void end_if_complete(struct attempt *x)
{
    if (x->awaited != 0)
        return;
    send_confirmations(x);
    attempt_end(x, EXCHANGE_COMMITTED);
}

/* Takes a child's confirmation, to pass it on together with this node's own. Returns false if this node does
 * not wait for that child; the caller then passes the confirmation on. */
static bool commit_collects(struct attempt *x, unsigned port, const uint32_t *rank, size_t count)
{
    if (x == NULL || x->state != EXCHANGE_COMMITTING || (x->awaited & 1u << port) == 0)
        return false;
    collect_confirmations(x, rank, count);
    x->awaited &= ~(1u << port);
    end_if_complete(x);
    return true;
}

void commit_topology(struct attempt *x)
{
    if (attempt_is_root(x))
        return; /* the root waits for nodes, not for links */
    x->awaited &= ~x->fault.lost;
    end_if_complete(x);
}

uint64_t commit_deadline(const struct attempt *x)
{
    uint64_t until = unconfirmed_until(decision_find(x->exchanges, &x->id), x->exchanges,
                                       attempt_waits_for_nodes(x));

    return until < x->deadline ? until : x->deadline;
}

void commit_stop_waiting(struct attempt *x)
{
    x->deadline = ROUTER_NEVER;
    x->awaited &= OWN_PART;
    send_confirmations(x);
    end_if_complete(x);
}

static void on_placed(struct attempt *x)
{
    uint32_t rank = rank_of(x);

    local_resources_close(x, false);
    if (attempt_is_root(x)) {
        decision_confirm_own(x->exchanges, &x->id, "");
        return;
    }
    x->awaited &= ~OWN_PART;
    collect_confirmations(x, &rank, 1);
    end_if_complete(x);
}

static void on_obstacle(struct attempt *x, const struct error *e)
{
    log_error("exchange %s: the output could not be put in place: %s", x->id.text, e->text);
    local_resources_close(x, true);
    in_doubt_add(x, true);
    decision_confirm_own(x->exchanges, &x->id, e->text);
    if (attempt_is_root(x))
        return;
    send_confirmations(x);
    x->failure = *e;
    attempt_end(x, EXCHANGE_IN_DOUBT);
}

void commit_advance(struct attempt *x)
{
    struct error e;
    int result;

    if (x->local.sink == NULL)
        return; /* the output is in place here; only other nodes are not done */
    result = x->local.sink->ops->commit(x->local.sink, &e);
    if (result > 0)
        on_placed(x);
    else if (result < 0)
        on_obstacle(x, &e);
}

int commit_heard(struct attempt *x, unsigned port, const struct peer_commit *message,
                 struct error *e)
{
    (void)port, (void)message, (void)e;
    send_commit(x);
    if (x->state == EXCHANGE_DONE)
        begin_commit(x, true);
    else if (x->state == EXCHANGE_IN_DOUBT)
        (void)in_doubt_resolve(x->exchanges, &x->id, true);
    /* In other states a reminder was faster, and only nodes below this one may still need the decision. */
    return 0;
}

/* --- messages about outcomes ---
 *
 * Nodes in doubt ask roots, roots remind nodes, nodes confirm. A message goes along
 * the tree of its destination, on one path, as one frame per link. Nothing is flooded, so messages cannot multiply. */

#define REMINDED_AT_ONCE 32u /* the next ones follow after LINK_LOSS_GATHER_TIME */

/* Returns this root's answer about an exchange; 0: not decided yet. */
static int outcome_of(struct exchanges *exchanges, const struct exchange_id *id)
{
    const struct attempt *x = attempt_find_id(exchanges, id);

    if (x != NULL && !state_of(x)->unheard && !state_of(x)->ended &&
        x->state != EXCHANGE_COMMITTING)
        return 0; /* withdrawn attempts are not committed */
    return decision_find(exchanges, id) != NULL ? 1 : -1;
}

static void ask_about(struct exchanges *exchanges, struct doubt *d)
{
    const struct peer_message query = {
        .kind = PEER_OUTCOME_QUERY,
        .outcome_query = {d->id.text, router_rank(exchanges->set.router)}};
    uint32_t root = d->id.root;

    if (d->committed) {
        (void)in_doubt_resolve(exchanges, &d->id, true);
    } else if (root == router_rank(exchanges->set.router)) {
        int known = outcome_of(exchanges, &d->id);
        if (known != 0)
            (void)in_doubt_resolve(exchanges, &d->id, known > 0);
    } else if (root < router_torus(exchanges->set.router)->nodes &&
               tree_messages_port(exchanges, root) >= 0) {
        tree_messages_towards(exchanges, root, &query);
    }
}

void outcome_ask(struct exchanges *exchanges)
{
    struct doubt *next;

    for (struct doubt *d = exchanges->doubts; d != NULL; d = next) {
        next = d->next;
        ask_about(exchanges, d);
    }
}

static void remind_node(struct exchanges *exchanges, const struct decision *d, uint32_t rank)
{
    const struct peer_message message = {
        .kind = PEER_OUTCOME, .outcome = {.id = d->id.text, .committed = true, .initiator = rank}};

    tree_messages_towards(exchanges, rank, &message);
}

/* Puts this node's own output in place, after a restart or an obstacle. */
static void resolve_own(struct exchanges *exchanges, struct decision *d)
{
    const struct attempt *x = attempt_find_id(exchanges, &d->id);

    if (decision_has(d, router_rank(exchanges->set.router)) ||
        (x != NULL && x->local.sink != NULL) || in_doubt_resolve(exchanges, &d->id, true))
        return;
    decision_confirm_own(exchanges, &d->id, "");
}

uint64_t outcome_pause(const struct exchanges *exchanges)
{
    return topology_whole(router_topology(exchanges->set.router)) ? ASK_EVERY : LOOK_EVERY;
}

/* Reminds the next nodes that have not confirmed. */
static void remind_some(struct exchanges *exchanges, struct decision *d, uint64_t now)
{
    uint32_t nodes = router_torus(exchanges->set.router)->nodes,
             me = router_rank(exchanges->set.router);
    uint32_t rank = d->remind_next;
    unsigned reminded = 0;

    if (rank == 0)
        d->reminded_at = now;
    for (; rank < nodes && reminded < REMINDED_AT_ONCE; rank++)
        if (rank != me && !decision_has(d, rank) && tree_messages_port(exchanges, rank) >= 0) {
            remind_node(exchanges, d, rank);
            reminded++;
        }
    d->remind_next = rank < nodes ? rank : 0;
    d->remind_at = now + (d->remind_next > 0 ? LINK_LOSS_GATHER_TIME : outcome_pause(exchanges));
    ask_by(exchanges, d->remind_at);
}

void outcome_remind(struct exchanges *exchanges, uint64_t now)
{
    struct decision *next;

    for (struct decision *d = exchanges->decisions; d != NULL; d = next) {
        next = d->next;
        if (now < d->remind_at || !decision_is_on_record(exchanges, d)) {
            ask_by(exchanges, now < d->remind_at ? d->remind_at : now + ASK_EVERY);
            continue;
        }
        remind_some(exchanges, d, now);
        resolve_own(exchanges, d); /* may confirm for the last node, and free *d */
    }
}

/* Whether the path from node `rank` to `root` reaches this node through this port. The path follows the tree
 * `parent`; NULL: the tree of the whole torus. */
static bool leads_here(const struct exchanges *exchanges, const uint8_t *parent, uint32_t root,
                       uint32_t rank, unsigned port)
{
    const struct torus *t = router_torus(exchanges->set.router);
    uint32_t here = router_rank(exchanges->set.router);
    struct tree_node at;

    while (rank != root && rank != here) {
        if (parent != NULL)
            tree_node_found(t, parent, rank, &at);
        else
            tree_node(t, root, rank, &at);
        if (at.parent < 0)
            return false;
        rank = torus_neighbour(t, rank, (unsigned)at.parent);
        if (rank == here)
            return torus_port_opposite(t, (unsigned)at.parent) == port;
    }
    return false;
}

/* Whether all nodes in the message are below this port, in the exchange's own tree or in the tree of the links
 * that are up now. */
static bool all_below(const struct exchanges *exchanges, const struct peer_confirm *message,
                      uint32_t root, const struct attempt *x, unsigned port)
{
    const uint8_t *now = tree_messages_parents(exchanges, root);
    const uint8_t *then = x != NULL && x->avoided != NULL ? x->avoided->parent : now;
    bool below = true;

    for (size_t i = 0; i < message->n_rank && below; i++)
        below = leads_here(exchanges, now, root, message->rank[i], port) ||
                (then != now && leads_here(exchanges, then, root, message->rank[i], port)) ||
                (now != NULL && leads_here(exchanges, NULL, root, message->rank[i], port));
    return below;
}

int outcome_confirm_heard(struct exchanges *exchanges, unsigned port,
                          const struct peer_confirm *message, struct error *e)
{
    uint32_t nodes = router_torus(exchanges->set.router)->nodes;
    char obstacle[sizeof((struct error *)0)->text];
    struct exchange_id id;
    struct attempt *x;
    uint32_t root;

    if (exchange_id_read(&id, message->id, nodes, "confirmation", e) != 0)
        return -1;
    root = id.root;
    if (message->n_rank == 0 || message->n_rank > nodes)
        return error_set(
            e, ERROR_PROTOCOL,
            "confirmation of exchange %s by %zu nodes, which is none or more than the torus has",
            id.text, message->n_rank);
    for (size_t i = 0; i < message->n_rank; i++)
        if (message->rank[i] >= nodes || message->rank[i] == root)
            return error_set(
                e, ERROR_PROTOCOL,
                "confirmation of exchange %s by node %u, which is its root or does not exist",
                id.text, message->rank[i]);
    x = attempt_find_id(exchanges, &id);
    if (!all_below(exchanges, message, root, x, port))
        return 0; /* the sender knows of other lost links; it confirms again when it is reminded */
    text_printable(obstacle, sizeof obstacle, message->obstacle);
    if (obstacle[0] != '\0' || root == router_rank(exchanges->set.router) ||
        !commit_collects(x, port, message->rank, message->n_rank))
        decision_confirm(exchanges, &id, message->rank, message->n_rank, obstacle);
    return 0;
}

/* Whether a message from `from` to `to` may arrive through this port: along the tree of `to`, over the links
 * that are up now, or over all links if its sender knows of no lost link. Without this check a node could ask
 * in the name of another node, and that node's neighbour would seem to have sent a bad question. */
static bool comes_from(const struct exchanges *exchanges, uint32_t from, uint32_t to, unsigned port)
{
    const uint8_t *now = tree_messages_parents(exchanges, to);

    return leads_here(exchanges, now, to, from, port) ||
           (now != NULL && leads_here(exchanges, NULL, to, from, port));
}

int outcome_query_heard(struct exchanges *exchanges, unsigned port,
                        const struct peer_outcome_query *query, struct error *e)
{
    uint32_t nodes = router_torus(exchanges->set.router)->nodes,
             me = router_rank(exchanges->set.router);
    struct exchange_id id;

    if (exchange_id_read(&id, query->id, nodes, "outcome query", e) != 0)
        return -1;
    if (query->initiator >= nodes)
        return error_set(e, ERROR_PROTOCOL,
                         "outcome query of node %u, which does not exist, about exchange %s",
                         query->initiator, id.text);
    if (!comes_from(exchanges, query->initiator, id.root, port))
        return 0;
    if (id.root != me) {
        const struct peer_message onward = {.kind = PEER_OUTCOME_QUERY,
                                            .outcome_query = {id.text, query->initiator}};
        tree_messages_towards(exchanges, id.root, &onward);
        return 0;
    }
    int known = outcome_of(exchanges, &id);
    if (known != 0) {
        const struct peer_message answer = {
            .kind = PEER_OUTCOME,
            .outcome = {.id = id.text, .committed = known > 0, .initiator = query->initiator}};
        tree_messages_towards(exchanges, query->initiator, &answer);
    }
    return 0;
}

/* Handles the outcome of another node's exchange, for this node. */
static void hear_outcome(struct exchanges *exchanges, const struct exchange_id *id, bool committed)
{
    struct attempt *x = attempt_find_id(exchanges, id);
    const struct error lost = {.code = ERROR_CANCELLED,
                               .text = "its root did not commit the exchange"};

    if (in_doubt_resolve(exchanges, id, committed))
        return;
    if (x != NULL && x->state == EXCHANGE_DONE) {
        if (committed) {
            commit_begin(x);
        } else {
            x->failure = lost;
            attempt_end(x, EXCHANGE_FAILED);
        }
    } else if (committed && (x == NULL || state_of(x)->ended)) {
        decision_confirm_own(exchanges, id, ""); /* the output is already in place */
    }
}

int outcome_heard(struct exchanges *exchanges, unsigned port, const struct peer_outcome *answer,
                  struct error *e)
{
    uint32_t nodes = router_torus(exchanges->set.router)->nodes,
             me = router_rank(exchanges->set.router);
    const struct peer_message onward = {.kind = PEER_OUTCOME, .outcome = *answer};
    struct exchange_id id;

    if (exchange_id_read(&id, answer->id, nodes, "outcome", e) != 0)
        return -1;
    if (answer->initiator >= nodes)
        return error_set(e, ERROR_PROTOCOL,
                         "outcome of exchange %s for node %u, which does not exist", id.text,
                         answer->initiator);
    if (!comes_from(exchanges, id.root, answer->initiator, port))
        return 0; /* only the root knows the outcome; a node in doubt asks again */
    if (answer->initiator == me) {
        hear_outcome(exchanges, &id, answer->committed);
        return 0;
    }
    tree_messages_towards(exchanges, answer->initiator, &onward);
    return 0;
}
