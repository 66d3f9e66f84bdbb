/* A node that had finished, but was cut off before it heard the outcome, keeps its output under its
 * temporary name and asks when the torus is whole again. The root's journal knows: what is not
 * recorded there as committed was not. Question and answer go along the tree of the node they are
 * meant for, one way and one frame a link: nothing is flooded, so nothing can multiply. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/text.h"
#include "daemon/exchange/internal.h"

#define ASK_EVERY (2 * SECONDS)

void doubt_add(struct exchanges *all, const char *id)
{
    struct doubt *d = calloc(1, sizeof *d);

    if (d == NULL)
        return; /* the journal still has it: asked about after the next start */
    (void)snprintf(d->id, sizeof d->id, "%s", id);
    d->next = all->doubts;
    all->doubts = d;
    log_warning("exchange %s is in doubt: its output is kept under its temporary name", id);
    if (all->ask_at == ROUTER_NEVER)
        all->ask_at = router_now(all->set.router) + ASK_EVERY / 4;
}

static void load_one(void *argument, const char *id)
{
    doubt_add(argument, id);
}

void doubts_load(struct exchanges *all)
{
    all->set.storage->each_in_doubt(all->set.storage->context, load_one, all);
}

void doubts_free(struct exchanges *all)
{
    while (all->doubts != NULL) {
        struct doubt *d = all->doubts;
        all->doubts = d->next;
        free(d);
    }
}

/* The outcome is known: the doubt ends. */
static void settle(struct exchanges *all, const char *id, bool committed)
{
    for (struct doubt **at = &all->doubts; *at != NULL; at = &(*at)->next) {
        struct doubt *d = *at;
        struct exchange *x, *next;
        struct error e;
        if (strcmp(d->id, id) != 0)
            continue;
        if (all->set.storage->resolve(all->set.storage->context, id, committed, &e) != 0) {
            log_error("exchange %s: %s", id, e.text);
            return; /* asked about again */
        }
        log_info("exchange %s was %s", id, committed ? "committed" : "not committed");
        HASH_ITER(hh, all->ended, x, next)
        if (strcmp(x->id, id) == 0)
            x->state = committed ? EXCHANGE_COMMITTED : EXCHANGE_FAILED;
        *at = d->next;
        free(d);
        return;
    }
}

/* An id begins with the root's rank. */
static uint32_t root_of(const char *id)
{
    return (uint32_t)strtoul(id, NULL, 10);
}

/* The root's word on an exchange that is no longer under way; 0: not yet decided. */
static int outcome(struct exchanges *all, const char *id)
{
    struct exchange *x, *next;

    HASH_ITER(hh, all->active, x, next)
    if (strcmp(x->id, id) == 0 && x->state != EXCHANGE_COMMITTING)
        return 0;
    return all->set.storage->was_committed(all->set.storage->context, id) ? 1 : -1;
}

/* One link nearer to the node that it is meant for. */
static void send_towards(struct exchanges *all, uint32_t rank, const Peer__Head *head)
{
    struct tree_node here;

    tree_node(router_torus(all->set.router), rank, router_rank(all->set.router), &here);
    router_send(all->set.router, (unsigned)here.parent, head);
}

void doubts_tick(struct exchanges *all, uint64_t now)
{
    if (now < all->ask_at)
        return;
    all->ask_at = all->doubts != NULL ? now + ASK_EVERY : ROUTER_NEVER;
    if (!topology_whole(router_topology(all->set.router)))
        return;
    for (struct doubt *d = all->doubts, *next; d != NULL; d = next) {
        Peer__OutcomeQuery query = PEER__OUTCOME_QUERY__INIT;
        Peer__Head head = PEER__HEAD__INIT;
        uint32_t root = root_of(d->id);
        next = d->next;
        if (root == router_rank(all->set.router)) {
            int known = outcome(all, d->id);
            if (known != 0)
                settle(all, d->id, known > 0);
        } else if (root < router_torus(all->set.router)->nodes) {
            query.id = d->id;
            query.asker = router_rank(all->set.router);
            head.kind_case = PEER__HEAD__KIND_OUTCOME_QUERY;
            head.outcome_query = &query;
            send_towards(all, root, &head);
        }
    }
}

int doubt_query_heard(struct exchanges *all, const Peer__OutcomeQuery *query, struct error *e)
{
    uint32_t nodes = router_torus(all->set.router)->nodes, me = router_rank(all->set.router);
    char id[EXCHANGE_ID_SIZE];
    Peer__Head head = PEER__HEAD__INIT;

    text_printable(id, sizeof id, query->id);
    if (query->asker >= nodes || query->asker == me || root_of(id) >= nodes)
        return error_set(e, ERROR_PROTOCOL, "node %u asks about an exchange of node %u",
                         query->asker, root_of(id));
    if (root_of(id) != me) {
        Peer__OutcomeQuery onward = *query;
        onward.id = id;
        head.kind_case = PEER__HEAD__KIND_OUTCOME_QUERY;
        head.outcome_query = &onward;
        send_towards(all, root_of(id), &head);
        return 0;
    }
    int known = outcome(all, id);
    if (known != 0) {
        Peer__Outcome answer = PEER__OUTCOME__INIT;
        answer.id = id;
        answer.committed = known > 0;
        answer.asker = query->asker;
        head.kind_case = PEER__HEAD__KIND_OUTCOME;
        head.outcome = &answer;
        send_towards(all, query->asker, &head);
    }
    return 0;
}

int doubt_outcome_heard(struct exchanges *all, const Peer__Outcome *answer, struct error *e)
{
    char id[EXCHANGE_ID_SIZE];
    Peer__Head head = PEER__HEAD__INIT;
    Peer__Outcome onward = *answer;

    if (answer->asker >= router_torus(all->set.router)->nodes)
        return error_set(e, ERROR_PROTOCOL, "an answer for node %u", answer->asker);
    text_printable(id, sizeof id, answer->id);
    if (answer->asker == router_rank(all->set.router)) {
        settle(all, id, answer->committed);
        return 0;
    }
    onward.id = id;
    head.kind_case = PEER__HEAD__KIND_OUTCOME;
    head.outcome = &onward;
    send_towards(all, answer->asker, &head);
    return 0;
}
