/* Doubts: outputs that this node had finished when it was cut off, before it heard the outcome. They keep their
 * temporary name until outcome_messages.c has found out the outcome, and are then put in place or removed.
 *
 * An output of a committed exchange that could not be put in place is a doubt, too: this node tries again until
 * the obstacle is gone. */
#include "daemon/exchange/commit/in_doubt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/commit/decisions.h"
#include "daemon/exchange/record/id.h"
#include "daemon/exchange/record/job.h"
#include "daemon/exchange/record/table.h"
#include "daemon/exchange/record/times.h"
#include "proto/text.h"

static struct doubt *find(struct exchanges *all, const struct exchange_id *id)
{
    struct doubt *d = all->doubts;

    while (d != NULL && !exchange_id_equal(&d->id, id))
        d = d->next;
    return d;
}

static void add(struct exchanges *all, struct doubt *d, const struct exchange_id *id, bool decided)
{
    d->id = *id;
    d->committed = decided;
    d->next = all->doubts;
    all->doubts = d;
    ask_by(all, router_now(all->set.router) + LOOK_EVERY);
}

void in_doubt_add(struct attempt *x, bool decided)
{
    add(x->all, x->doubt, &x->id, decided);
    x->doubt = NULL;
}

unsigned in_doubt_about(const struct exchanges *all, uint32_t root)
{
    unsigned n = 0;

    for (const struct doubt *d = all->doubts; d != NULL; d = d->next)
        n += d->id.root == root;
    return n;
}

struct loading {
    struct exchanges *all;
    bool failed;
};

static void load_one(void *argument, const char *text)
{
    struct loading *loading = argument;
    struct exchange_id id;
    struct doubt *d;

    if (exchange_id_parse(&id, text) != 0) {
        log_warning("\"%s\" is on record as in doubt, which is not an exchange id", text);
        return;
    }
    d = calloc(1, sizeof *d);
    loading->failed = loading->failed || d == NULL;
    if (d != NULL)
        add(loading->all, d, &id, false);
}

int in_doubt_load(struct exchanges *all, struct error *e)
{
    struct loading loading = {all, false};

    if (all->set.storage->each_in_doubt(all->set.storage->context, load_one, &loading, e) != 0)
        return -1;
    return loading.failed ? error_set(e, ERROR_MEMORY, "out of memory") : 0;
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

void in_doubt_free(struct exchanges *all)
{
    while (all->doubts != NULL)
        drop(all, all->doubts);
}

static void on_resolved(void *context, const char *text, const struct error *e)
{
    struct exchanges *all = context;
    struct exchange_id id;

    if (exchange_id_parse(&id, text) != 0)
        return;
    struct doubt *d = find(all, &id);
    struct attempt *x = attempt_find_id(all, &id);
    if (d == NULL)
        return;
    bool committed = d->committed;
    d->resolving = false;
    if (e != NULL) { /* outcome_ask() tries again */
        log_warning("exchange %s: %s", text, e->text);
        if (committed)
            decision_confirm_own(all, &id, e->text);
        return;
    }
    log_info("exchange %s was %s", text, committed ? "committed" : "not committed");
    if (x != NULL && x->state == EXCHANGE_IN_DOUBT) {
        if (committed)
            x->failure.code = ERROR_NONE;
        attempt_end(x, committed ? EXCHANGE_COMMITTED : EXCHANGE_FAILED);
    }
    drop(all, d);
    if (committed)
        decision_confirm_own(all, &id, "");
}

bool in_doubt_resolve(struct exchanges *all, const struct exchange_id *id, bool committed)
{
    const struct storage *storage = all->set.storage;
    const struct attempt *x = attempt_find_id(all, id);
    struct doubt *d = find(all, id);

    if (d == NULL)
        return false;
    if (d->resolving || (d->committed && !committed) || (x != NULL && x->own.closing > 0))
        return true; /* outcome_ask() asks again */
    d->committed = committed;
    d->resolving = true;
    storage->resolve(storage->context, id->text, committed, on_resolved, all);
    return true;
}
