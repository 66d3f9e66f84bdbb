#include "daemon/torusd/exchange/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/torusd/exchange/decisions.h"
#include "daemon/torusd/exchange/exchange.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/kept_blocks.h"
#include "daemon/torusd/exchange/membership.h"
#include "proto/elapsed.h"

/* --- texts --- */

#define SENTENCE_NODES_MOST 4u /* nodes that are named; beyond that only their number */

/* A text for people that is put together piece by piece, and truncated where it does not fit. */
struct sentence {
    char text[sizeof((struct error *)0)->text];
    size_t used; /* a zeroed sentence is empty */
};

/* Adds formatted text. */
static void __attribute__((format(printf, 2, 3)))
sentence_add(struct sentence *s, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    int n = vsnprintf(s->text + s->used, sizeof s->text - s->used, format, ap);
    va_end(ap);
    s->used += n > 0 ? (size_t)n : 0;
    if (s->used >= sizeof s->text)
        s->used = sizeof s->text - 1;
}

/* Adds "5 (1,1)". */
static void add_node(struct sentence *s, const struct torus *t, uint32_t rank)
{
    uint32_t at[TORUS_MAX_DIMS];

    sentence_add(s, "%u", rank);
    if (t->dims == 1)
        return; /* one dimension: the coordinate is the rank */
    torus_coordinates(t, rank, at);
    for (unsigned dim = 0; dim < t->dims; dim++)
        sentence_add(s, "%s%u", dim == 0 ? " (" : ",", at[dim]);
    sentence_add(s, ")");
}

/* Adds the nodes for which is_one(context, rank) is true: "node 5 (1,1)", "nodes 5 (1,1), 6 (1,2) and 3 more".
 * Returns the number of these nodes; adds nothing if it is 0. */
static uint32_t sentence_add_nodes(struct sentence *s, const struct torus *t,
                                   bool (*is_one)(const void *context, uint32_t rank),
                                   const void *context)
{
    uint32_t count = 0, named = 0;

    for (uint32_t rank = 0; rank < t->nodes; rank++)
        count += is_one(context, rank);
    if (count == 0)
        return 0;
    sentence_add(s, "%s ", count == 1 ? "node" : "nodes");
    for (uint32_t rank = 0; rank < t->nodes && named < SENTENCE_NODES_MOST; rank++)
        if (is_one(context, rank)) {
            sentence_add(s, "%s", named == 0 ? "" : named + 1 == count ? " and " : ", ");
            add_node(s, t, rank);
            named++;
        }
    if (named < count)
        sentence_add(s, " and %u more", count - named);
    return count;
}

/* --- unconfirmed decisions ---
 *
 * Describes a decision that some nodes have not confirmed, and says how long the client waits for them. The
 * client does not wait for its whole timeout if that is useless: the remaining nodes cannot be reached, or
 * somebody must first remove an obstacle to an output. */

/* How long a client waits for an output with an obstacle. */
#define OBSTACLE_TIME (10 * SECONDS)

enum reason { DOWN, CUT_OFF, LATE, OBSTRUCTED };

static const struct {
    const char *one, *several;
} words[] = {
    [DOWN] = {"went down before it confirmed that its output is in place",
              "went down before they confirmed that their output is in place"},
    [CUT_OFF] = {"cannot be reached and has not confirmed that its output is in place",
                 "cannot be reached and have not confirmed that their output is in place"},
    [LATE] = {"has not confirmed that its output is in place",
              "have not confirmed that their output is in place"},
    [OBSTRUCTED] = {"could not put its output in place, and tries again by itself", NULL},
};

static enum reason reason_of(const struct decision *d, const struct exchanges *exchanges,
                             uint32_t rank)
{
    if (absent_is_down(exchanges, rank))
        return DOWN;
    if (absent_is_unreachable(exchanges, rank))
        return CUT_OFF;
    return rank == d->obstacle_at ? OBSTRUCTED : LATE;
}

struct unconfirmed {
    const struct decision *d;
    const struct exchanges *exchanges;
    enum reason reason;
};

static bool has_reason(const void *context, uint32_t rank)
{
    const struct unconfirmed *u = context;

    return !decision_has(u->d, rank) && reason_of(u->d, u->exchanges, rank) == u->reason;
}

/* Adds "nodes 5 (1,1), 6 (1,2) and 3 more went down before ...": the nodes that have not confirmed for this
 * reason. Returns the number of these nodes. */
static uint32_t add_clause(struct sentence *s, const struct decision *d,
                           const struct exchanges *exchanges, enum reason reason,
                           const char *before)
{
    const struct unconfirmed u = {d, exchanges, reason};
    struct sentence nodes = {.used = 0};
    uint32_t count =
        sentence_add_nodes(&nodes, router_torus(exchanges->set.router), has_reason, &u);

    if (count > 0)
        sentence_add(s, "%s%s %s", before, nodes.text,
                     count == 1 ? words[reason].one : words[reason].several);
    return count;
}

void unconfirmed_describe(const struct decision *d, const struct exchanges *exchanges,
                          struct error *e)
{
    struct sentence s = {.used = 0};
    uint32_t down, count;

    down = count = add_clause(&s, d, exchanges, DOWN, "");
    count += add_clause(&s, d, exchanges, CUT_OFF, count > 0 ? "; " : "");
    count += add_clause(&s, d, exchanges, LATE, count > 0 ? "; " : "");
    if (count == 1)
        sentence_add(&s, "; it finishes by itself when it %s", down == count ? "is back" : "can");
    else if (count > 1)
        sentence_add(&s, "; they finish by themselves when they %s",
                     down == count ? "are back" : "can");
    if (add_clause(&s, d, exchanges, OBSTRUCTED, count > 0 ? "; " : "") > 0)
        sentence_add(&s, ": %s", d->obstacle);
    (void)error_set(e, ERROR_IN_DOUBT, "committed, but %s", s.text);
}

/* Returns when the last node that has not confirmed is given up. */
static uint64_t given_up_at(const struct decision *d, const struct exchanges *exchanges)
{
    uint32_t nodes = router_torus(exchanges->set.router)->nodes;
    uint64_t at = 0;

    for (uint32_t rank = 0; rank < nodes && at != ROUTER_NEVER; rank++)
        if (!decision_has(d, rank)) {
            uint64_t one = absent_given_up_at(exchanges, rank);
            at = one > at ? one : at;
        }
    return at;
}

uint64_t unconfirmed_until(const struct decision *d, const struct exchanges *exchanges, bool waits)
{
    uint64_t given_up = waits ? ROUTER_NEVER : given_up_at(d, exchanges);
    uint64_t obstacle =
        d->obstacle_at != TORUS_NO_NODE ? d->obstacle_since + OBSTACLE_TIME : ROUTER_NEVER;

    return given_up < obstacle ? given_up : obstacle;
}

/* --- what a job with spec.wait waits for --- */

static bool is_unreachable(const void *context, uint32_t rank)
{
    const struct job *j = context;

    return absent_is_unreachable(j->exchanges, rank);
}

static bool is_unconfirmed(const void *context, uint32_t rank)
{
    const struct job *j = context;
    const struct decision *d = decision_find(j->exchanges, &j->attempt->id);

    return d != NULL && !decision_has(d, rank) && absent_is_unreachable(j->exchanges, rank);
}

void waiting_describe(const struct job *j, char *text, size_t size)
{
    struct sentence s = {.used = 0};
    const struct torus *t = router_torus(j->exchanges->set.router);
    bool begins = job_waits(j) && j->fault.at != ROUTER_NEVER;
    bool ends = job_is_under_way(j) && j->attempt->state == EXCHANGE_COMMITTING &&
                attempt_is_root(j->attempt);

    if (job_waits_for_nodes(j) && (begins || ends) &&
        sentence_add_nodes(&s, t, ends ? is_unconfirmed : is_unreachable, j) == 0 && begins)
        sentence_add(&s, "links: %s", j->fault.e.text);
    (void)snprintf(text, size, "%s", s.text);
}

/* --- nodes that have not entered a barrier or group --- */

/* Whole branches, because a child reports only when all nodes below it have entered. */
static bool is_awaited(const void *context, uint32_t node)
{
    const struct job *j = context;
    const int port = spec_is_member(&j->spec, node) ? avoided_branch(j->attempt, node) : -1;

    return port >= 0 && (j->attempt->awaited & 1u << port) != 0;
}

static uint32_t list_nodes(const struct job *j, bool (*is_listed)(const void *, uint32_t),
                           char *list, size_t size)
{
    const uint32_t all = router_torus(j->exchanges->set.router)->nodes;
    uint32_t nodes = 0;
    size_t used = 0;

    for (uint32_t node = 0; node < all; node++) {
        if (!is_listed(j, node))
            continue;
        if (used < size - 16) /* leave room for a rank and the end */
            used += (size_t)snprintf(list + used, size - used, "%s%u", used > 0 ? ", " : "", node);
        else if (list[used - 1] != '.')
            used += (size_t)snprintf(list + used, size - used, " ...");
        nodes++;
    }
    return nodes;
}

uint32_t exchange_missing(const struct job *j, char *list, size_t size)
{
    list[0] = '\0';
    if (!kind_of_spec(&j->spec)->is_entered)
        return 0;
    if (j->state == JOB_ENTERED) {
        uint32_t root = membership_root(j->exchanges, &j->spec);
        if (root == TORUS_NO_NODE)
            return 0;
        return (void)snprintf(list, size, "%u", root), 1;
    }
    if (j->state == JOB_WAITING && job_waits_for_nodes(j))
        return list_nodes(j, is_unreachable, list, size);
    if (!job_is_under_way(j) || !attempt_awaits_entry(j->attempt))
        return 0;
    return list_nodes(j, is_awaited, list, size);
}

/* --- states --- */

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
    bool irregular = spec_has_folders(&x->spec);
    uint64_t bytes = irregular ? 0 : exchange_receives(x, rank_of(x)) * x->spec.block_bytes;
    /* A node forgets its counters when it has finished a repetition. */
    uint32_t finished =
        kept + r->repetition +
        (x->state == EXCHANGE_PAUSED ||
         (state_of(x)->moves && !exchange_last_repetition(x) && (x->awaited & OWN_PART) == 0));

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
    waiting_describe(j, progress->waits_for, sizeof progress->waits_for);
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

uint64_t exchange_reserved(const struct job *j)
{
    return j->reserved + (j->attempt != NULL ? j->attempt->local.reserved : 0);
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

void exchanges_count(const struct exchanges *exchanges, struct exchange_counts *counts)
{
    *counts = (struct exchange_counts){.totals = exchanges->totals};
    for (const struct attempt *x = exchanges->active; x != NULL; x = x->next) {
        if (kind_of(x)->has_session)
            continue;
        counts->under_way += !state_of(x)->unheard;
        if (x->local.engine != NULL)
            counts->totals.delivered_bytes += x->local.engine->counts.bytes_delivered;
    }
    for (const struct job *j = exchanges->jobs; j != NULL; j = j->next)
        counts->waiting += job_waits(j) && !kind_of_spec(&j->spec)->has_session;
    for (const struct doubt *d = exchanges->doubts; d != NULL; d = d->next)
        counts->in_doubt++;
    for (const struct decision *d = exchanges->decisions; d != NULL; d = d->next)
        counts->unconfirmed += decision_is_on_record(exchanges, d);
}
