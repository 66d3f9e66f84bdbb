/* Doubts: outputs that this node had finished when it was cut off, before it heard the outcome. They keep their
 * temporary name until outcome_messages.c has found out the outcome, and are then put in place or removed.
 *
 * An output of a committed exchange that could not be put in place is a doubt, too: this node tries again until
 * the obstacle is gone. */
#include "daemon/torusd/exchange/commit/in_doubt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/commit/decisions.h"
#include "daemon/torusd/exchange/record/id.h"
#include "daemon/torusd/exchange/record/job.h"
#include "daemon/torusd/exchange/record/table.h"
#include "daemon/torusd/exchange/record/times.h"
#include "proto/text.h"

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
    d->next = exchanges->doubts;
    exchanges->doubts = d;
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

struct loading {
    struct exchanges *exchanges;
    bool failed;
};

static void load_one(void *argument, const char *text)
{
    struct loading *loading = argument;
    struct exchange_id id;
    struct doubt *d;

    if (exchange_id_parse(&id, text) != 0) {
        log_warning("ignoring the recorded doubt about \"%s\", which is not an exchange id", text);
        return;
    }
    d = calloc(1, sizeof *d);
    loading->failed = loading->failed || d == NULL;
    if (d != NULL)
        add_doubt(loading->exchanges, d, &id, false);
}

int in_doubt_load(struct exchanges *exchanges, struct error *e)
{
    struct loading loading = {exchanges, false};

    if (exchanges->set.storage->each_in_doubt(exchanges->set.storage->context, load_one, &loading,
                                              e) != 0)
        return -1;
    return loading.failed ? error_set(e, ERROR_MEMORY, "out of memory for the recorded doubts") : 0;
}

static void drop_doubt(struct exchanges *exchanges, struct doubt *d)
{
    for (struct doubt **at = &exchanges->doubts; *at != NULL; at = &(*at)->next)
        if (*at == d) {
            *at = d->next;
            free(d);
            return;
        }
}

void in_doubt_free(struct exchanges *exchanges)
{
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
