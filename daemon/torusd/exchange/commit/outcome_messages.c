/* Messages about outcomes: nodes in doubt ask roots, roots remind nodes, nodes confirm. A message goes along
 * the tree of its destination, one way, as one frame per link. Nothing is flooded, so messages cannot multiply. */
#include "daemon/torusd/exchange/commit/outcome_messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/tree.h"
#include "daemon/torusd/exchange/commit/commit.h"
#include "daemon/torusd/exchange/commit/decisions.h"
#include "daemon/torusd/exchange/commit/in_doubt.h"
#include "daemon/torusd/exchange/record/avoided.h"
#include "daemon/torusd/exchange/record/id.h"
#include "daemon/torusd/exchange/record/job.h"
#include "daemon/torusd/exchange/record/table.h"
#include "daemon/torusd/exchange/record/times.h"
#include "daemon/torusd/exchange/record/tree_messages.h"
#include "proto/text.h"

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
        .kind = PEER_OUTCOME, .outcome = {.id = d->id.text, .committed = true, .asker = rank}};

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

/* Whether the way from node `rank` to `root` reaches this node through this port. The way follows the tree
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
    if (query->asker >= nodes)
        return error_set(e, ERROR_PROTOCOL,
                         "outcome query of node %u, which does not exist, about exchange %s",
                         query->asker, id.text);
    if (!comes_from(exchanges, query->asker, id.root, port))
        return 0;
    if (id.root != me) {
        const struct peer_message onward = {.kind = PEER_OUTCOME_QUERY,
                                            .outcome_query = {id.text, query->asker}};
        tree_messages_towards(exchanges, id.root, &onward);
        return 0;
    }
    int known = outcome_of(exchanges, &id);
    if (known != 0) {
        const struct peer_message answer = {
            .kind = PEER_OUTCOME,
            .outcome = {.id = id.text, .committed = known > 0, .asker = query->asker}};
        tree_messages_towards(exchanges, query->asker, &answer);
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
    if (answer->asker >= nodes)
        return error_set(e, ERROR_PROTOCOL,
                         "outcome of exchange %s for node %u, which does not exist", id.text,
                         answer->asker);
    if (!comes_from(exchanges, id.root, answer->asker, port))
        return 0; /* only the root knows the outcome; a node in doubt asks again */
    if (answer->asker == me) {
        hear_outcome(exchanges, &id, answer->committed);
        return 0;
    }
    tree_messages_towards(exchanges, answer->asker, &onward);
    return 0;
}
