/* A node that had finished, but was cut off before it heard the outcome, keeps its output under its
 * temporary name and asks when the torus is whole again. The root's decisions tell: what is not on
 * record there as committed was not. Question and answer go along the tree of the node they are
 * meant for, one way and one frame a link: nothing is flooded, so nothing can multiply.
 *
 * An output that could not be put in place, although that is decided, is a doubt, too: it is tried
 * again until what is in its way has gone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/internal.h"
#include "proto/text.h"

struct doubt {
    struct doubt *next;
    char id[EXCHANGE_ID_SIZE];
    bool committed; /* the outcome is known */
    bool resolving; /* and being carried out */
};

static struct doubt *find(struct exchanges *all, const char *id)
{
    struct doubt *d = all->doubts;

    while (d != NULL && strcmp(d->id, id) != 0)
        d = d->next;
    return d;
}

struct doubt *doubt_new(void)
{
    return calloc(1, sizeof(struct doubt));
}

static void add(struct exchanges *all, struct doubt *d, const char *id, bool decided)
{
    uint64_t soon = router_now(all->set.router) + ASK_EVERY / 4;

    (void)snprintf(d->id, sizeof d->id, "%s", id);
    d->committed = decided;
    d->next = all->doubts;
    all->doubts = d;
    if (soon < all->ask_at)
        all->ask_at = soon;
}

void doubt_add(struct exchange *x, bool decided)
{
    add(x->all, x->doubt, x->id, decided);
    x->doubt = NULL;
}

struct loading {
    struct exchanges *all;
    bool failed;
};

static void load_one(void *argument, const char *id)
{
    struct loading *loading = argument;
    struct doubt *d = doubt_new();

    loading->failed = loading->failed || d == NULL;
    if (d != NULL)
        add(loading->all, d, id, false);
}

int doubts_load(struct exchanges *all)
{
    struct loading loading = {all, false};

    all->set.storage->each_in_doubt(all->set.storage->context, load_one, &loading);
    return loading.failed ? -1 : 0;
}

static void drop(struct exchanges *all, struct doubt *d)
{
    for (struct doubt **at = &all->doubts; *at != NULL; at = &(*at)->next)
        if (*at == d) {
            *at = d->next;
            free(d);
            return;
        }
}

void doubts_free(struct exchanges *all)
{
    while (all->doubts != NULL)
        drop(all, all->doubts);
}

static void confirm_own(struct exchanges *all, const char *id, const char *obstacle)
{
    uint32_t rank = router_rank(all->set.router);

    decision_confirm(all, id, &rank, 1, obstacle);
}

static void on_resolved(void *context, const char *id, const struct error *e)
{
    struct exchanges *all = context;
    struct doubt *d = find(all, id);
    struct exchange *x = exchange_find_id(all, id);
    bool committed = d != NULL && d->committed;

    if (d == NULL)
        return;
    d->resolving = false;
    if (e != NULL) { /* tried again */
        log_warning("exchange %s: %s", id, e->text);
        if (committed)
            confirm_own(all, id, e->text);
        return;
    }
    log_info("exchange %s was %s", id, committed ? "committed" : "not committed");
    if (x != NULL && x->state == EXCHANGE_IN_DOUBT) {
        if (committed)
            x->failure.code = ERROR_NONE;
        exchange_enter(x, committed ? EXCHANGE_COMMITTED : EXCHANGE_FAILED);
    }
    drop(all, d);
    if (committed)
        confirm_own(all, id, "");
}

bool doubt_settle(struct exchanges *all, const char *id, bool committed)
{
    const struct storage *storage = all->set.storage;
    const struct exchange *x = exchange_find_id(all, id);
    struct doubt *d = find(all, id);

    if (d == NULL)
        return false;
    if (d->resolving || (d->committed && !committed) || (x != NULL && x->own.closing > 0))
        return true; /* asked about again */
    d->committed = committed;
    d->resolving = true;
    storage->resolve(storage->context, id, committed, on_resolved, all);
    return true;
}

/* The root's answer about an exchange; 0: not yet decided. */
static int outcome(struct exchanges *all, const char *id)
{
    const struct exchange *x = exchange_find_id(all, id);

    if (x != NULL && !exchange_has_ended(x->state) && x->state != EXCHANGE_COMMITTING)
        return 0;
    return decision_find(all, id) != NULL ? 1 : -1;
}

static void ask(struct exchanges *all, struct doubt *d)
{
    Peer__OutcomeQuery query = PEER__OUTCOME_QUERY__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    uint32_t root = exchange_root_of(d->id);

    if (d->committed) {
        (void)doubt_settle(all, d->id, true);
    } else if (root == router_rank(all->set.router)) {
        int known = outcome(all, d->id);
        if (known != 0)
            (void)doubt_settle(all, d->id, known > 0);
    } else if (root < router_torus(all->set.router)->nodes &&
               topology_whole(router_topology(all->set.router))) {
        query.id = d->id;
        query.asker = router_rank(all->set.router);
        head.kind_case = PEER__HEAD__KIND_OUTCOME_QUERY;
        head.outcome_query = &query;
        wave_towards(all, root, &head);
    }
}

void doubts_ask(struct exchanges *all)
{
    struct doubt *next;

    for (struct doubt *d = all->doubts; d != NULL; d = next) {
        next = d->next;
        ask(all, d);
    }
}

int doubt_query_heard(struct exchanges *all, unsigned port, const Peer__Head *head, struct error *e)
{
    const Peer__OutcomeQuery *query = head->outcome_query;
    uint32_t nodes = router_torus(all->set.router)->nodes, me = router_rank(all->set.router);
    char id[EXCHANGE_ID_SIZE];
    Peer__Head to = PEER__HEAD__INIT;
    uint32_t root;

    (void)port;
    text_printable(id, sizeof id, query->id);
    root = exchange_root_of(id);
    if (query->asker >= nodes || query->asker == me || root >= nodes)
        return error_set(e, ERROR_PROTOCOL,
                         "invalid outcome query of node %u about an exchange of node %u",
                         query->asker, root);
    if (root != me) {
        Peer__OutcomeQuery onward = *query;
        onward.id = id;
        to.kind_case = PEER__HEAD__KIND_OUTCOME_QUERY;
        to.outcome_query = &onward;
        wave_towards(all, root, &to);
        return 0;
    }
    int known = outcome(all, id);
    if (known != 0) {
        Peer__Outcome answer = PEER__OUTCOME__INIT;
        answer.id = id;
        answer.committed = known > 0;
        answer.asker = query->asker;
        to.kind_case = PEER__HEAD__KIND_OUTCOME;
        to.outcome = &answer;
        wave_towards(all, query->asker, &to);
    }
    return 0;
}

/* The outcome of an exchange of another node, for this node. */
static void hear_outcome(struct exchanges *all, const char *id, bool committed)
{
    struct exchange *x = exchange_find_id(all, id);
    const struct error lost = {ERROR_CANCELLED, "its root did not commit it"};

    if (doubt_settle(all, id, committed))
        return;
    if (x != NULL && x->state == EXCHANGE_DONE) {
        if (committed) {
            commit_begin(x);
        } else {
            x->failure = lost;
            exchange_enter(x, EXCHANGE_FAILED);
        }
    } else if (committed && (x == NULL || exchange_has_ended(x->state))) {
        confirm_own(all, id, ""); /* it is in place */
    }
}

int doubt_outcome_heard(struct exchanges *all, unsigned port, const Peer__Head *head,
                        struct error *e)
{
    const Peer__Outcome *answer = head->outcome;
    uint32_t nodes = router_torus(all->set.router)->nodes, me = router_rank(all->set.router);
    char id[EXCHANGE_ID_SIZE];
    Peer__Head to = PEER__HEAD__INIT;
    Peer__Outcome onward = *answer;

    (void)port;
    text_printable(id, sizeof id, answer->id);
    if (answer->asker >= nodes || exchange_root_of(id) >= nodes)
        return error_set(e, ERROR_PROTOCOL,
                         "invalid outcome for node %u about an exchange of node %u", answer->asker,
                         exchange_root_of(id));
    if (answer->asker == me) {
        if (exchange_root_of(id) != me)
            hear_outcome(all, id, answer->committed);
        return 0;
    }
    onward.id = id;
    to.kind_case = PEER__HEAD__KIND_OUTCOME;
    to.outcome = &onward;
    wave_towards(all, answer->asker, &to);
    return 0;
}
