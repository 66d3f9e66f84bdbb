/* Shows clients the state of exchanges. */
#include "daemon/torusd/exchange/exchange.h"

#include <stdio.h>
#include <string.h>

#include "daemon/lib/base/shares.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/torusd/exchange/commit/decisions.h"
#include "daemon/torusd/exchange/commit/unconfirmed.h"
#include "daemon/torusd/exchange/phases/waiting.h"
#include "daemon/torusd/exchange/record/avoided.h"
#include "daemon/torusd/exchange/record/kept_blocks.h"
#include "daemon/torusd/exchange/record/predicates.h"
#include "proto/elapsed.h"

bool exchange_all_may_have_entered(const struct job *j)
{
    return (j->attempt != NULL && attempt_all_entered(j->attempt)) ||
           !exchange_id_is_none(&j->resumes) || j->ready;
}

bool exchange_is_undecided(const struct job *j)
{
    return !kind_of_spec(&j->spec)->is_entered && !job_has_ended(j) &&
           (j->attempt == NULL || !state_of(j->attempt)->decided);
}

const char *exchange_id(const struct job *j)
{
    return j->name.id.text;
}

/* Adds the bytes of `finished` repetitions; `bytes` arrive here in each repetition. */
static void add_repetitions(struct exchange_progress *progress, uint64_t bytes, uint32_t finished)
{
    if (__builtin_mul_overflow(bytes, progress->repeat, &progress->total_bytes))
        progress->total_bytes = 0; /* too large to be shown */
    else
        progress->done_bytes += bytes * finished;
}

/* Returns the bytes that have arrived here in this repetition, or in an earlier attempt. */
static uint64_t delivered_bytes(const struct attempt *x)
{
    if (x->local.engine == NULL)
        return x->local.delivered_bytes;
    return x->local.engine->counts.bytes_delivered +
           (x->local.resumed != NULL ? x->local.resumed->bytes : 0);
}

/* Sets the progress of the attempt that is under way, or of the last one. */
static void attempt_progress(const struct attempt *x, struct exchange_progress *progress)
{
    const struct rounds *r = &x->rounds;
    uint32_t kept = x->job->repetitions.kept;
    bool sized = spec_has_folders(&x->spec);
    uint64_t bytes = sized ? 0 : exchange_receives(x, rank_of(x)) * x->spec.block_bytes;
    /* A node forgets its counters when it has finished a repetition. */
    uint32_t finished =
        kept + r->repetition +
        (x->state == EXCHANGE_PAUSED ||
         (state_of(x)->moves && !exchange_last_repetition(x) && (x->owed & OWN_PART) == 0));

    progress->state = x->state;
    progress->repetition = kept + r->repetition;
    progress->round = r->round - exchange_first_round(x);
    progress->rounds = r->count;
    progress->done_bytes = delivered_bytes(x);
    add_repetitions(progress, bytes, finished);
}

/* Returns the state to show for a job without an attempt that other nodes know of. */
static enum exchange_state shown_state(const struct job *j)
{
    return j->state == JOB_ENTERED ? EXCHANGE_ENTERED : EXCHANGE_WAITING;
}

/* Whether to show the attempt: other nodes know of it, and no retry has replaced it. */
static bool is_worth_showing(const struct attempt *x)
{
    return !state_of(x)->unheard && x->state != EXCHANGE_WITHDRAWN;
}

void exchange_progress(const struct job *j, struct exchange_progress *progress)
{
    struct sentence awaited = {.used = 0};

    *progress = (struct exchange_progress){
        .state = shown_state(j),
        .repetition = j->repetitions.kept,
        .repeat = j->spec.repeat,
        .rounds = 1,
    };
    if (j->attempt != NULL && is_worth_showing(j->attempt))
        attempt_progress(j->attempt, progress);
    else if (j->last != NULL && !spec_has_folders(&j->spec))
        add_repetitions(progress,
                        exchange_receives(j->last, router_rank(j->exchanges->set.router)) *
                            j->spec.block_bytes,
                        j->repetitions.kept);
    waiting_describe(j, &awaited);
    (void)snprintf(progress->waits_for, sizeof progress->waits_for, "%s", awaited.text);
}

static void attempt_info(const struct attempt *x, struct exchange_info *out)
{
    *out = (struct exchange_info){
        .state = x->state,
        .root = x->root,
        .age_ns = elapsed(x->job != NULL ? x->job->began : x->began,
                          router_now(x->exchanges->set.router)),
    };
    (void)snprintf(out->id, sizeof out->id, "%s", x->id.text);
    (void)snprintf(out->algorithm, sizeof out->algorithm, "%s",
                   x->algorithm != NULL    ? x->algorithm->name
                   : avoided_has_routes(x) ? avoided_routes_name(x)
                                           : x->spec.algorithm);
    (void)snprintf(out->reason, sizeof out->reason, "%s", x->failure.text);
    out->rounds = x->rounds.count;
    out->round = x->rounds.round - exchange_first_round(x);
    out->done_bytes = delivered_bytes(x);
    if (!spec_has_folders(&x->spec) && !kind_of(x)->has_session)
        out->total_bytes = exchange_receives(x, rank_of(x)) * x->spec.block_bytes;
}

/* Whether to list the attempt here; groups have a list of their own. */
static bool is_listed(const struct attempt *x)
{
    return is_worth_showing(x) && !kind_of(x)->has_session;
}

static bool is_listed_waiting(const struct job *j)
{
    return job_waits(j) && !kind_of_spec(&j->spec)->has_session;
}

static void info_waiting(const struct job *j, struct exchange_info *out)
{
    *out = (struct exchange_info){
        .state = shown_state(j),
        .root = router_rank(j->exchanges->set.router),
        .age_ns = elapsed(j->began, router_now(j->exchanges->set.router)),
    };
    (void)snprintf(out->id, sizeof out->id, "%s", exchange_id(j));
    (void)snprintf(out->algorithm, sizeof out->algorithm, "%s", j->spec.algorithm);
    (void)snprintf(out->reason, sizeof out->reason, "%s", j->failure.text);
}

size_t exchanges_list(const struct exchanges *exchanges, struct exchange_info *list, size_t most)
{
    size_t n = 0;

    for (const struct attempt *x = exchanges->active; x != NULL && n < most; x = x->next)
        if (is_listed(x))
            attempt_info(x, &list[n++]);
    for (const struct job *j = exchanges->jobs; j != NULL && n < most; j = j->next)
        if (is_listed_waiting(j))
            info_waiting(j, &list[n++]);
    const struct attempt *last = exchanges->ended != NULL ? exchanges->ended->prev : NULL;
    for (const struct attempt *x = last; x != NULL && n < most;
         x = x == exchanges->ended ? NULL : x->prev) /* the head's prev is the tail */
        if (is_listed(x))
            attempt_info(x, &list[n++]);
    return n;
}

struct schedules *exchanges_schedules(struct exchanges *exchanges)
{
    return exchanges->schedules;
}

unsigned exchanges_under_way(const struct exchanges *exchanges)
{
    unsigned n = 0;

    for (const struct attempt *x = exchanges->active; x != NULL; x = x->next)
        n += !state_of(x)->unheard;
    for (const struct job *j = exchanges->jobs; j != NULL; j = j->next)
        n += job_waits(j);
    return n;
}

uint64_t exchanges_reserved(const struct exchanges *exchanges)
{
    return shares_total(exchanges->set.shares, SHARE_TRANSIT) +
           shares_total(exchanges->set.shares, SHARE_GROUPS);
}

static void list_one(const struct decision *d, const struct exchanges *exchanges,
                     struct exchange_unconfirmed *out)
{
    uint32_t nodes = router_torus(exchanges->set.router)->nodes;
    struct error e;

    unconfirmed_describe(d, exchanges, &e);
    (void)strcpy(out->id, d->id.text);
    memcpy(out->reason, e.text, sizeof out->reason);
    out->count = 0;
    for (uint32_t rank = 0; rank < nodes; rank++)
        if (!decision_has(d, rank)) {
            if (out->count < EXCHANGE_UNCONFIRMED_NAMED)
                out->node[out->count] = rank;
            out->count++;
        }
}

size_t exchanges_unconfirmed(const struct exchanges *exchanges, struct exchange_unconfirmed *list,
                             size_t most)
{
    size_t n = 0;

    for (const struct decision *d = exchanges->decisions; d != NULL && n < most; d = d->next)
        if (decision_is_on_record(exchanges, d))
            list_one(d, exchanges, &list[n++]);
    return n;
}

const struct trace *exchanges_last_trace(const struct exchanges *exchanges)
{
    const struct trace *last = NULL;

    for (unsigned i = 0; i < TRACES_KEPT; i++)
        if (exchanges->trace[i] != NULL &&
            (last == NULL || exchanges->trace[i]->began > last->began))
            last = exchanges->trace[i];
    return last;
}
