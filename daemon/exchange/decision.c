/* What this node, as a root, has decided to commit and not every node has confirmed. It stays on
 * record until then; nodes that have not confirmed are reminded when the torus is whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/internal.h"
#include "proto/text.h"

#define REMINDED_AT_ONCE 32u

struct decision {
    struct decision *next;
    char id[EXCHANGE_ID_SIZE];
    uint64_t remind_at;
    uint32_t confirmed;   /* nodes */
    uint32_t obstacle_at; /* a node that could not yet, TORUS_NO_NODE: none is known */
    char obstacle[sizeof((struct error *)0)->text];
    uint8_t by[]; /* bit per rank */
};

static bool has(const struct decision *d, uint32_t rank)
{
    return (d->by[rank / 8] & 1u << rank % 8) != 0;
}

struct decision *decision_find(struct exchanges *all, const char *id)
{
    struct decision *d = all->decisions;

    while (d != NULL && strcmp(d->id, id) != 0)
        d = d->next;
    return d;
}

static void ask_soon(struct exchanges *all, uint64_t at)
{
    if (at < all->ask_at)
        all->ask_at = at;
}

struct decision *decision_add(struct exchanges *all, const char *id)
{
    uint32_t nodes = router_torus(all->set.router)->nodes;
    struct decision *d = calloc(1, sizeof *d + (nodes + 7) / 8);

    if (d == NULL)
        return NULL;
    (void)snprintf(d->id, sizeof d->id, "%s", id);
    d->obstacle_at = TORUS_NO_NODE;
    d->remind_at = router_now(all->set.router) + VERDICT_TIME; /* the wave is faster */
    d->next = all->decisions;
    all->decisions = d;
    ask_soon(all, d->remind_at);
    return d;
}

void decision_drop(struct exchanges *all, struct decision *d)
{
    for (struct decision **at = &all->decisions; *at != NULL; at = &(*at)->next)
        if (*at == d) {
            *at = d->next;
            free(d);
            return;
        }
}

struct loading {
    struct exchanges *all;
    bool failed;
};

static void load_one(void *context, const char *id)
{
    struct loading *loading = context;

    if (decision_find(loading->all, id) == NULL && decision_add(loading->all, id) == NULL)
        loading->failed = true;
}

int decisions_load(struct exchanges *all)
{
    struct loading loading = {all, false};

    all->set.storage->each_committed(all->set.storage->context, load_one, &loading);
    return loading.failed ? -1 : 0;
}

void decisions_free(struct exchanges *all)
{
    while (all->decisions != NULL)
        decision_drop(all, all->decisions);
}

void decision_describe(const struct decision *d, const struct exchanges *all, struct error *e)
{
    uint32_t nodes = router_torus(all->set.router)->nodes, first = 0;

    while (d != NULL && first < nodes && has(d, first))
        first++;
    if (d != NULL && d->obstacle_at != TORUS_NO_NODE)
        (void)error_set(e, ERROR_IN_DOUBT,
                        "committed, but node %u could not put its output in place, and tries again "
                        "by itself: %s",
                        d->obstacle_at, d->obstacle);
    else
        (void)error_set(
            e, ERROR_IN_DOUBT,
            "committed, but %u nodes, node %u among them, have not confirmed that their "
            "output is in place; they finish by themselves when they can",
            d != NULL ? nodes - d->confirmed : nodes, first);
}

static void complete(struct exchanges *all, struct decision *d)
{
    struct exchange *x = exchange_find_id(all, d->id);

    log_debug("exchange %s: every node has confirmed", d->id);
    all->set.storage->forget_commit(all->set.storage->context, d->id);
    decision_drop(all, d);
    if (x != NULL && x->state == EXCHANGE_COMMITTING)
        exchange_enter(x, EXCHANGE_COMMITTED);
}

static void confirmed(struct exchanges *all, const char *id, uint32_t rank, const char *obstacle)
{
    struct decision *d = decision_find(all, id);

    if (d == NULL || has(d, rank))
        return;
    if (obstacle[0] != '\0') {
        d->obstacle_at = rank;
        text_printable(d->obstacle, sizeof d->obstacle, obstacle);
        return;
    }
    if (d->obstacle_at == rank)
        d->obstacle_at = TORUS_NO_NODE;
    d->by[rank / 8] |= (uint8_t)(1u << rank % 8);
    if (++d->confirmed == router_torus(all->set.router)->nodes)
        complete(all, d);
}

void decision_confirm(struct exchanges *all, const char *id, const uint32_t *rank, size_t count,
                      const char *obstacle)
{
    Peer__Confirm message = PEER__CONFIRM__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    uint32_t root = exchange_root_of(id);

    if (root == router_rank(all->set.router)) {
        for (size_t i = 0; i < count; i++)
            confirmed(all, id, rank[i], obstacle);
        return;
    }
    message.id = (char *)(uintptr_t)id;
    message.n_rank = count;
    message.rank = (uint32_t *)(uintptr_t)rank; /* packing only reads it */
    message.obstacle = (char *)(uintptr_t)obstacle;
    head.kind_case = PEER__HEAD__KIND_CONFIRM;
    head.confirm = &message;
    wave_towards(all, root, &head);
}

/* Whether the root's tree leads from that node to this one by this port. */
static bool is_below(const struct exchanges *all, uint32_t root, uint32_t rank, unsigned port)
{
    const struct torus *t = router_torus(all->set.router);
    uint32_t here = router_rank(all->set.router);
    struct tree_node at;

    while (rank != root && rank != here) {
        tree_node(t, root, rank, &at);
        rank = torus_neighbour(t, rank, (unsigned)at.parent);
        if (rank == here)
            return torus_port_opposite((unsigned)at.parent) == port;
    }
    return false;
}

int confirm_heard(struct exchanges *all, unsigned port, const Peer__Head *head, struct error *e)
{
    const Peer__Confirm *message = head->confirm;
    uint32_t nodes = router_torus(all->set.router)->nodes;
    char id[EXCHANGE_ID_SIZE], obstacle[sizeof((struct error *)0)->text];
    uint32_t root;

    text_printable(id, sizeof id, message->id);
    root = exchange_root_of(id);
    if (root >= nodes || message->n_rank == 0 || message->n_rank > nodes)
        return error_set(e, ERROR_PROTOCOL,
                         "invalid confirmation of %zu nodes for an exchange of node %u",
                         message->n_rank, root);
    for (size_t i = 0; i < message->n_rank; i++)
        if (message->rank[i] >= nodes || !is_below(all, root, message->rank[i], port))
            return error_set(e, ERROR_PROTOCOL, "invalid confirmation of node %u for exchange %s",
                             message->rank[i], id);
    text_printable(obstacle, sizeof obstacle, message->obstacle);
    if (obstacle[0] != '\0' || root == router_rank(all->set.router) ||
        !commit_collects(exchange_find_id(all, id), port, message->rank, message->n_rank))
        decision_confirm(all, id, message->rank, message->n_rank, obstacle);
    return 0;
}

static void remind(struct exchanges *all, const struct decision *d, uint32_t rank)
{
    Peer__Outcome message = PEER__OUTCOME__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    message.id = (char *)(uintptr_t)d->id;
    message.committed = true;
    message.asker = rank;
    head.kind_case = PEER__HEAD__KIND_OUTCOME;
    head.outcome = &message;
    wave_towards(all, rank, &head);
}

/* Of this node's own output, after a restart or an obstacle. */
static void settle_own(struct exchanges *all, struct decision *d)
{
    const struct exchange *x = exchange_find_id(all, d->id);

    if (has(d, router_rank(all->set.router)) || (x != NULL && x->own.sink != NULL) ||
        doubt_settle(all, d->id, true))
        return;
    confirmed(all, d->id, router_rank(all->set.router), "");
}

void decisions_remind(struct exchanges *all, uint64_t now)
{
    uint32_t nodes = router_torus(all->set.router)->nodes, me = router_rank(all->set.router);
    struct decision *next;

    for (struct decision *d = all->decisions; d != NULL; d = next) {
        const struct exchange *x = exchange_find_id(all, d->id);
        unsigned reminded = 0;
        next = d->next;
        if (now < d->remind_at || (x != NULL && x->state == EXCHANGE_DECIDING)) {
            ask_soon(all, now < d->remind_at ? d->remind_at : now + ASK_EVERY);
            continue;
        }
        d->remind_at = now + ASK_EVERY;
        ask_soon(all, d->remind_at);
        for (uint32_t rank = 0; rank < nodes && reminded < REMINDED_AT_ONCE; rank++)
            if (rank != me && !has(d, rank) && topology_whole(router_topology(all->set.router))) {
                remind(all, d, rank);
                reminded++;
            }
        settle_own(all, d); /* may be the last one: *d is gone then */
    }
}
