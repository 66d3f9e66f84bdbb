/* Messages about outcomes: nodes in doubt ask roots, roots remind nodes, nodes confirm. A message goes along
 * the tree of the node that it is for, one way, in one frame a link. Nothing is flooded, so messages cannot
 * multiply. */
#include "daemon/exchange/commit/outcome_messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/exchange/commit/commit.h"
#include "daemon/exchange/commit/decisions.h"
#include "daemon/exchange/commit/in_doubt.h"
#include "daemon/exchange/record/avoided.h"
#include "daemon/exchange/record/id.h"
#include "daemon/exchange/record/job.h"
#include "daemon/exchange/record/table.h"
#include "daemon/exchange/record/times.h"
#include "daemon/exchange/record/tree_messages.h"
#include "daemon/schedule/tree.h"
#include "proto/text.h"

#define REMINDED_AT_ONCE 32u /* the next ones follow after LINK_LOSS_GATHER_TIME */

/* Returns this root's answer about an exchange; 0: not decided yet. */
static int outcome(struct exchanges *all, const struct exchange_id *id)
{
    const struct attempt *x = attempt_find_id(all, id);

    if (x != NULL && !state_of(x)->unheard && !state_of(x)->ended &&
        x->state != EXCHANGE_COMMITTING)
        return 0; /* withdrawn attempts are not committed */
    return decision_find(all, id) != NULL ? 1 : -1;
}

static void ask(struct exchanges *all, struct doubt *d)
{
    const struct peer_message query = {.kind = PEER_OUTCOME_QUERY,
                                       .outcome_query = {d->id.text, router_rank(all->set.router)}};
    uint32_t root = d->id.root;

    if (d->committed) {
        (void)in_doubt_resolve(all, &d->id, true);
    } else if (root == router_rank(all->set.router)) {
        int known = outcome(all, &d->id);
        if (known != 0)
            (void)in_doubt_resolve(all, &d->id, known > 0);
    } else if (root < router_torus(all->set.router)->nodes && tree_messages_port(all, root) >= 0) {
        tree_messages_towards(all, root, &query);
    }
}

void outcome_ask(struct exchanges *all)
{
    struct doubt *next;

    for (struct doubt *d = all->doubts; d != NULL; d = next) {
        next = d->next;
        ask(all, d);
    }
}

static void remind(struct exchanges *all, const struct decision *d, uint32_t rank)
{
    const struct peer_message message = {
        .kind = PEER_OUTCOME, .outcome = {.id = d->id.text, .committed = true, .asker = rank}};

    tree_messages_towards(all, rank, &message);
}

/* Puts this node's own output in place, after a restart or an obstacle. */
static void resolve_own(struct exchanges *all, struct decision *d)
{
    const struct attempt *x = attempt_find_id(all, &d->id);

    if (decision_has(d, router_rank(all->set.router)) || (x != NULL && x->own.sink != NULL) ||
        in_doubt_resolve(all, &d->id, true))
        return;
    decision_confirm_own(all, &d->id, "");
}

uint64_t outcome_pause(const struct exchanges *all)
{
    return topology_whole(router_topology(all->set.router)) ? ASK_EVERY : LOOK_EVERY;
}

/* Reminds the next nodes that have not confirmed. */
static void remind_some(struct exchanges *all, struct decision *d, uint64_t now)
{
    uint32_t nodes = router_torus(all->set.router)->nodes, me = router_rank(all->set.router);
    uint32_t rank = d->remind_next;
    unsigned reminded = 0;

    if (rank == 0)
        d->reminded_at = now;
    for (; rank < nodes && reminded < REMINDED_AT_ONCE; rank++)
        if (rank != me && !decision_has(d, rank) && tree_messages_port(all, rank) >= 0) {
            remind(all, d, rank);
            reminded++;
        }
    d->remind_next = rank < nodes ? rank : 0;
    d->remind_at = now + (d->remind_next > 0 ? LINK_LOSS_GATHER_TIME : outcome_pause(all));
    ask_by(all, d->remind_at);
}

void outcome_remind(struct exchanges *all, uint64_t now)
{
    struct decision *next;

    for (struct decision *d = all->decisions; d != NULL; d = next) {
        next = d->next;
        if (now < d->remind_at || !decision_is_on_record(all, d)) {
            ask_by(all, now < d->remind_at ? d->remind_at : now + ASK_EVERY);
            continue;
        }
        remind_some(all, d, now);
        resolve_own(all, d); /* may confirm for the last node, and free *d */
    }
}

/* Whether a tree of the root leads from node `from` to this node through this port. */
static bool leads_here(const struct exchanges *all, const uint8_t *parent, uint32_t root,
                       uint32_t rank, unsigned port)
{
    const struct torus *t = router_torus(all->set.router);
    uint32_t here = router_rank(all->set.router);
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
            return torus_port_opposite((unsigned)at.parent) == port;
    }
    return false;
}

/* Whether all nodes in the message are below this port, in the exchange's own tree or in the tree of the links
 * that are up now. */
static bool all_below(const struct exchanges *all, const struct peer_confirm *message,
                      uint32_t root, const struct attempt *x, unsigned port)
{
    const uint8_t *now = tree_messages_parents(all, root);
    const uint8_t *then = x != NULL && x->avoided != NULL ? x->avoided->parent : now;
    bool below = true;

    for (size_t i = 0; i < message->n_rank && below; i++)
        below = leads_here(all, now, root, message->rank[i], port) ||
                (then != now && leads_here(all, then, root, message->rank[i], port)) ||
                (now != NULL && leads_here(all, NULL, root, message->rank[i], port));
    return below;
}

int outcome_confirm_heard(struct exchanges *all, unsigned port, const struct peer_confirm *message,
                          struct error *e)
{
    uint32_t nodes = router_torus(all->set.router)->nodes;
    char obstacle[sizeof((struct error *)0)->text];
    struct exchange_id id;
    struct attempt *x;
    uint32_t root;

    if (exchange_id_read(&id, message->id, nodes, "confirmation", e) != 0)
        return -1;
    root = id.root;
    if (message->n_rank == 0 || message->n_rank > nodes)
        return error_set(e, ERROR_PROTOCOL, "invalid confirmation of %zu %s for exchange %s",
                         message->n_rank, text_plural(message->n_rank, "node", "nodes"), id.text);
    for (size_t i = 0; i < message->n_rank; i++)
        if (message->rank[i] >= nodes || message->rank[i] == root)
            return error_set(e, ERROR_PROTOCOL, "invalid confirmation of node %u for exchange %s",
                             message->rank[i], id.text);
    x = attempt_find_id(all, &id);
    if (!all_below(all, message, root, x, port))
        return 0; /* the sender knows of other lost links; it confirms again when it is reminded */
    text_printable(obstacle, sizeof obstacle, message->obstacle);
    if (obstacle[0] != '\0' || root == router_rank(all->set.router) ||
        !commit_collects(x, port, message->rank, message->n_rank))
        decision_confirm(all, &id, message->rank, message->n_rank, obstacle);
    return 0;
}

/* Whether a message from `from` to `to` may arrive through this port: along the tree of `to`, over the links
 * that are up now, or over all links if its sender knows of no lost link. Without this check a node could ask
 * in the name of another node, and that node's neighbour would seem to have sent a bad question. */
static bool comes_from(const struct exchanges *all, uint32_t from, uint32_t to, unsigned port)
{
    const uint8_t *now = tree_messages_parents(all, to);

    return leads_here(all, now, to, from, port) ||
           (now != NULL && leads_here(all, NULL, to, from, port));
}

int outcome_query_heard(struct exchanges *all, unsigned port,
                        const struct peer_outcome_query *query, struct error *e)
{
    uint32_t nodes = router_torus(all->set.router)->nodes, me = router_rank(all->set.router);
    struct exchange_id id;

    if (exchange_id_read(&id, query->id, nodes, "outcome query", e) != 0)
        return -1;
    if (query->asker >= nodes)
        return error_set(e, ERROR_PROTOCOL, "outcome query of node %u about exchange %s",
                         query->asker, id.text);
    if (!comes_from(all, query->asker, id.root, port))
        return 0;
    if (id.root != me) {
        const struct peer_message onward = {.kind = PEER_OUTCOME_QUERY,
                                            .outcome_query = {id.text, query->asker}};
        tree_messages_towards(all, id.root, &onward);
        return 0;
    }
    int known = outcome(all, &id);
    if (known != 0) {
        const struct peer_message answer = {
            .kind = PEER_OUTCOME,
            .outcome = {.id = id.text, .committed = known > 0, .asker = query->asker}};
        tree_messages_towards(all, query->asker, &answer);
    }
    return 0;
}

/* Handles the outcome of another node's exchange, for this node. */
static void hear_outcome(struct exchanges *all, const struct exchange_id *id, bool committed)
{
    struct attempt *x = attempt_find_id(all, id);
    const struct error lost = {.code = ERROR_CANCELLED, .text = "its root did not commit it"};

    if (in_doubt_resolve(all, id, committed))
        return;
    if (x != NULL && x->state == EXCHANGE_DONE) {
        if (committed) {
            commit_begin(x);
        } else {
            x->failure = lost;
            attempt_end(x, EXCHANGE_FAILED);
        }
    } else if (committed && (x == NULL || state_of(x)->ended)) {
        decision_confirm_own(all, id, ""); /* the output is already in place */
    }
}

int outcome_heard(struct exchanges *all, unsigned port, const struct peer_outcome *answer,
                  struct error *e)
{
    uint32_t nodes = router_torus(all->set.router)->nodes, me = router_rank(all->set.router);
    const struct peer_message onward = {.kind = PEER_OUTCOME, .outcome = *answer};
    struct exchange_id id;

    if (exchange_id_read(&id, answer->id, nodes, "outcome", e) != 0)
        return -1;
    if (answer->asker >= nodes)
        return error_set(e, ERROR_PROTOCOL, "outcome of exchange %s for node %u", id.text,
                         answer->asker);
    if (!comes_from(all, id.root, answer->asker, port))
        return 0; /* only the root knows the outcome; a node in doubt asks again */
    if (answer->asker == me) {
        hear_outcome(all, &id, answer->committed);
        return 0;
    }
    tree_messages_towards(all, answer->asker, &onward);
    return 0;
}
