#include "daemon/torusd/exchange/decisions.h"

#include <stdlib.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/tree_messages.h"
#include "proto/text.h"

struct decision *decision_find(struct exchanges *exchanges, const struct exchange_id *id)
{
    struct decision *d = exchanges->decisions;

    while (d != NULL && !exchange_id_equal(&d->id, id))
        d = d->next;
    return d;
}

struct decision *decision_add(struct exchanges *exchanges, const struct exchange_id *id,
                              uint64_t remind_at)
{
    uint32_t nodes = router_torus(exchanges->set.router)->nodes;
    struct decision *d = calloc(1, sizeof *d + (nodes + 7) / 8);

    if (d == NULL)
        return NULL;
    d->id = *id;
    d->obstacle_at = TORUS_NO_NODE;
    d->remind_at = remind_at;
    LL_PREPEND(exchanges->decisions, d);
    ask_by(exchanges, d->remind_at);
    return d;
}

void decision_drop(struct exchanges *exchanges, struct decision *d)
{
    LL_DELETE(exchanges->decisions, d);
    free(d);
}

unsigned decisions_count(const struct exchanges *exchanges)
{
    const struct decision *d;
    unsigned n;

    LL_COUNT(exchanges->decisions, d, n);
    return n;
}

bool decision_is_on_record(const struct exchanges *exchanges, const struct decision *d)
{
    const struct attempt *x = attempt_find_id(exchanges, &d->id);

    return x == NULL || x->state != EXCHANGE_DECIDING;
}

void decision_note(struct decision *d, uint32_t rank)
{
    d->confirmed_by[rank / 8] |= (uint8_t)(1u << rank % 8);
    d->confirmed++;
}

static void complete_decision(struct exchanges *exchanges, struct decision *d)
{
    struct attempt *x = attempt_find_id(exchanges, &d->id);

    log_debug("exchange %s: every node has confirmed", d->id.text);
    exchanges->set.storage->forget_commit(exchanges->set.storage->context, d->id.text);
    decision_drop(exchanges, d);
    if (x == NULL)
        return;
    if (x->state == EXCHANGE_COMMITTED) /* the client was told which nodes had not confirmed */
        x->failure = (struct error){0};
    if (x->state == EXCHANGE_COMMITTING)
        attempt_end(x, EXCHANGE_COMMITTED);
}

static void note_confirmation(struct exchanges *exchanges, const struct exchange_id *id,
                              uint32_t rank, const char *obstacle)
{
    struct decision *d = decision_find(exchanges, id);

    if (d == NULL || decision_has(d, rank))
        return;
    if (obstacle[0] != '\0') {
        if (d->obstacle_at == TORUS_NO_NODE)
            d->obstacle_since = router_now(exchanges->set.router);
        d->obstacle_at = rank;
        text_printable(d->obstacle, sizeof d->obstacle, obstacle);
        return;
    }
    if (d->obstacle_at == rank)
        d->obstacle_at = TORUS_NO_NODE;
    decision_note(d, rank);
    if (d->confirmed == router_torus(exchanges->set.router)->nodes)
        complete_decision(exchanges, d);
}

void decision_confirm(struct exchanges *exchanges, const struct exchange_id *id,
                      const uint32_t *rank, size_t count, const char *obstacle)
{
    const struct peer_message message = {
        .kind = PEER_CONFIRM,
        .confirm = {.id = id->text, .n_rank = count, .rank = rank, .obstacle = obstacle}};
    uint32_t root = id->root;

    if (root == router_rank(exchanges->set.router)) {
        for (size_t i = 0; i < count; i++)
            note_confirmation(exchanges, id, rank[i], obstacle);
        return;
    }
    tree_messages_towards(exchanges, root, &message);
}

void decision_confirm_own(struct exchanges *exchanges, const struct exchange_id *id,
                          const char *obstacle)
{
    uint32_t rank = router_rank(exchanges->set.router);

    decision_confirm(exchanges, id, &rank, 1, obstacle);
}

void decision_remind_soon(struct exchanges *exchanges, struct decision *d)
{
    uint64_t at = router_now(exchanges->set.router) + LINK_LOSS_GATHER_TIME;

    if (d->reminded_at != 0 && at < d->reminded_at + LOOK_EVERY)
        at = d->reminded_at + LOOK_EVERY;
    if (at < d->remind_at)
        d->remind_at = at;
    ask_by(exchanges, d->remind_at);
}

void decisions_remind_soon(struct exchanges *exchanges)
{
    for (struct decision *d = exchanges->decisions; d != NULL; d = d->next)
        decision_remind_soon(exchanges, d);
}

/* --- doubts ---
 *
 * Doubts: outputs that this node had finished when it was cut off, before it heard the outcome. They keep their
 * temporary name until commit.c has found out the outcome, and are then put in place or removed.
 *
 * An output of a committed exchange that could not be put in place is a doubt, too: this node tries again until
 * the obstacle is gone. */

static struct doubt *find_doubt(struct exchanges *exchanges, const struct exchange_id *id)
{
    struct doubt *d = exchanges->doubts;

    while (d != NULL && !exchange_id_equal(&d->id, id))
        d = d->next;
    return d;
}

static void add_doubt(struct exchanges *exchanges, struct doubt *d, const struct exchange_id *id,
                      bool decided)
{
    d->id = *id;
    d->committed = decided;
    LL_PREPEND(exchanges->doubts, d);
    ask_by(exchanges, router_now(exchanges->set.router) + LOOK_EVERY);
}

void in_doubt_add(struct attempt *x, bool decided)
{
    add_doubt(x->exchanges, x->doubt, &x->id, decided);
    x->doubt = NULL;
}

unsigned in_doubt_about(const struct exchanges *exchanges, uint32_t root)
{
    unsigned n = 0;

    for (const struct doubt *d = exchanges->doubts; d != NULL; d = d->next)
        n += d->id.root == root;
    return n;
}

static void drop_doubt(struct exchanges *exchanges, struct doubt *d)
{
    LL_DELETE(exchanges->doubts, d);
    free(d);
}

void decisions_free(struct exchanges *exchanges)
{
    while (exchanges->decisions != NULL)
        decision_drop(exchanges, exchanges->decisions);
    while (exchanges->doubts != NULL)
        drop_doubt(exchanges, exchanges->doubts);
}

static void on_resolved(void *context, const char *text, const struct error *e)
{
    struct exchanges *exchanges = context;
    struct exchange_id id;

    if (exchange_id_parse(&id, text) != 0)
        return;
    struct doubt *d = find_doubt(exchanges, &id);
    struct attempt *x = attempt_find_id(exchanges, &id);
    if (d == NULL)
        return;
    bool committed = d->committed;
    d->resolving = false;
    if (e != NULL) { /* outcome_ask() tries again */
        log_warning("exchange %s: its output cannot be %s yet: %s", text,
                    committed ? "put in place" : "removed", e->text);
        if (committed)
            decision_confirm_own(exchanges, &id, e->text);
        return;
    }
    log_info("exchange %s was %s", text, committed ? "committed" : "not committed");
    if (x != NULL && x->state == EXCHANGE_IN_DOUBT) {
        if (committed)
            x->failure.code = ERROR_NONE;
        attempt_end(x, committed ? EXCHANGE_COMMITTED : EXCHANGE_FAILED);
    }
    drop_doubt(exchanges, d);
    if (committed)
        decision_confirm_own(exchanges, &id, "");
}

bool in_doubt_resolve(struct exchanges *exchanges, const struct exchange_id *id, bool committed)
{
    const struct storage *storage = exchanges->set.storage;
    const struct attempt *x = attempt_find_id(exchanges, id);
    struct doubt *d = find_doubt(exchanges, id);

    if (d == NULL)
        return false;
    if (d->resolving || (d->committed && !committed) || (x != NULL && x->local.closing > 0))
        return true; /* outcome_ask() asks again */
    d->committed = committed;
    d->resolving = true;
    storage->resolve(storage->context, id->text, committed, on_resolved, exchanges);
    return true;
}

/* --- what was on record when this node stopped --- */

struct loading {
    struct exchanges *exchanges;
    const char *what;
    bool (*add)(struct exchanges *exchanges, const struct exchange_id *id);
    bool failed;
};

static bool load_decision(struct exchanges *exchanges, const struct exchange_id *id)
{
    /* Remind at once: no wave from before the restart is still on its way. */
    return decision_find(exchanges, id) != NULL ||
           decision_add(exchanges, id, router_now(exchanges->set.router)) != NULL;
}

static bool load_doubt(struct exchanges *exchanges, const struct exchange_id *id)
{
    struct doubt *d = calloc(1, sizeof *d);

    if (d != NULL)
        add_doubt(exchanges, d, id, false);
    return d != NULL;
}

static void load_one(void *context, const char *text)
{
    struct loading *loading = context;
    struct exchange_id id;

    if (exchange_id_parse(&id, text) != 0)
        log_warning("ignoring the recorded %s about \"%s\", which is not an exchange id",
                    loading->what, text);
    else if (!loading->add(loading->exchanges, &id))
        loading->failed = true;
}

static int no_memory(const struct loading *loading, struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for the recorded %ss", loading->what);
}

int decisions_load(struct exchanges *exchanges, struct error *e)
{
    const struct storage *storage = exchanges->set.storage;
    struct loading decisions = {exchanges, "decision", load_decision, false};
    struct loading doubts = {exchanges, "doubt", load_doubt, false};

    if (storage->each_committed(storage->context, load_one, &decisions, e) != 0 ||
        (decisions.failed && no_memory(&decisions, e) != 0) ||
        storage->each_in_doubt(storage->context, load_one, &doubts, e) != 0)
        return -1;
    return doubts.failed ? no_memory(&doubts, e) : 0;
}
