/* Decisions to commit that this node has made as a root. A decision stays on record until every node has
 * confirmed; nodes that have not are reminded when they can be reached. */
#include "daemon/torusd/exchange/commit/decisions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/record/id.h"
#include "daemon/torusd/exchange/record/job.h"
#include "daemon/torusd/exchange/record/table.h"
#include "daemon/torusd/exchange/record/times.h"
#include "daemon/torusd/exchange/record/tree_messages.h"
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
    d->next = exchanges->decisions;
    exchanges->decisions = d;
    ask_by(exchanges, d->remind_at);
    return d;
}

void decision_drop(struct exchanges *exchanges, struct decision *d)
{
    for (struct decision **at = &exchanges->decisions; *at != NULL; at = &(*at)->next)
        if (*at == d) {
            *at = d->next;
            free(d);
            return;
        }
}

unsigned decisions_count(const struct exchanges *exchanges)
{
    unsigned n = 0;

    for (const struct decision *d = exchanges->decisions; d != NULL; d = d->next)
        n++;
    return n;
}

bool decision_is_on_record(const struct exchanges *exchanges, const struct decision *d)
{
    const struct attempt *x = attempt_find_id(exchanges, &d->id);

    return x == NULL || x->state != EXCHANGE_DECIDING;
}

static void note_rank(struct decision *d, uint32_t rank)
{
    d->confirmed_by[rank / 8] |= (uint8_t)(1u << rank % 8);
    d->confirmed++;
}

void decision_excuse(struct decision *d, uint32_t rank)
{
    note_rank(d, rank);
}

struct loading {
    struct exchanges *exchanges;
    bool failed;
};

static void load_one(void *context, const char *text)
{
    struct loading *loading = context;
    struct exchange_id id;

    /* Remind at once: no wave from before the restart is still on its way. */
    uint64_t now = router_now(loading->exchanges->set.router);

    if (exchange_id_parse(&id, text) != 0)
        log_warning("ignoring the recorded decision about \"%s\", which is not an exchange id",
                    text);
    else if (decision_find(loading->exchanges, &id) == NULL &&
             decision_add(loading->exchanges, &id, now) == NULL)
        loading->failed = true;
}

int decisions_load(struct exchanges *exchanges, struct error *e)
{
    struct loading loading = {exchanges, false};

    if (exchanges->set.storage->each_committed(exchanges->set.storage->context, load_one, &loading,
                                               e) != 0)
        return -1;
    return loading.failed ? error_set(e, ERROR_MEMORY, "out of memory for the recorded decisions")
                          : 0;
}

void decisions_free(struct exchanges *exchanges)
{
    while (exchanges->decisions != NULL)
        decision_drop(exchanges, exchanges->decisions);
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
    note_rank(d, rank);
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
