/* Checks the invariants that hold between two events. */
#include "daemon/torusd/exchange/exchange.h"

#include "daemon/torusd/exchange/job.h"
#include "proto/text.h"

static int job_violated(const struct job *j, struct error *e, const char *what)
{
    return error_set(e, ERROR_PROTOCOL, "the job of exchange %s is %s: %s", exchange_id(j),
                     job_states[j->state].name, what);
}

static int check_job(const struct job *j, struct error *e)
{
    const struct attempt *x = j->attempt;

    if (x != NULL && x->job != j)
        return job_violated(j, e, "its attempt belongs to another job");
    if (job_is_under_way(j) && (x == NULL || state_of(x)->unheard || state_of(x)->ended))
        return job_violated(j, e, "it has no attempt under way");
    if (job_waits(j) && x != NULL && (!job_states[j->state].starting || !state_of(x)->unheard))
        return job_violated(j, e, "it has an attempt that other nodes know of");
    if (job_has_ended(j) && x != NULL && !state_of(x)->ended)
        return job_violated(j, e, "its attempt has not ended");
    if (j->last != NULL && (j->last->job != j || !state_of(j->last)->ended))
        return job_violated(j, e, "its former attempt has not ended");
    if (j->reserved > 0 && (job_is_under_way(j) || !job_has_been_open(j)))
        return job_violated(j, e, "it has memory reserved without a group");
    if (job_has_ended(j) && j->has_slot)
        return job_violated(j, e, "it still has a place");
    return 0;
}

static int attempt_violated(const struct attempt *x, struct error *e, const char *what)
{
    return error_set(e, ERROR_PROTOCOL, "exchange %s is %s: %s", x->id.text, state_of(x)->name,
                     what);
}

static bool presence_agrees(enum presence wanted, bool there)
{
    return wanted == MAY || (wanted == MUST) == there;
}

static int check_one(const struct attempt *x, struct error *e)
{
    const struct rounds *r = &x->rounds;

    if (attempt_is_root(x) ? !state_of(x)->root : !state_of(x)->other)
        return attempt_violated(x, e, "this node cannot be in that state");
    if (attempt_is_root(x) && x->root != rank_of(x))
        return attempt_violated(x, e, "this node is its root, but the attempt names another one");
    if (!presence_agrees(state_of(x)->blocks, x->local.source != NULL) ||
        (x->local.source == NULL) != (x->local.sink == NULL))
        return attempt_violated(x, e, "its blocks do not fit the state");
    if (!presence_agrees(state_of(x)->engine, x->local.engine != NULL))
        return attempt_violated(x, e, "its engine does not fit the state");
    if (x->local.engine == NULL && x->local.reserved > 0 && !attempt_is_open_group(x))
        return attempt_violated(x, e, "it has memory reserved without an engine");
    if (!presence_agrees(state_of(x)->awaited, x->awaited != 0))
        return attempt_violated(x, e, "the awaited parts of a wave do not fit the state");
    if (x->state == EXCHANGE_FAILED && x->failure.code == ERROR_NONE)
        return attempt_violated(x, e, "it has no reason");
    if (x->state == EXCHANGE_RUNNING &&
        (r->round > r->admitted || r->admitted > exchange_end_round(x) ||
         r->admitted > r->round + x->local.window ||
         x->local.engine->rounds_finished > r->admitted))
        return attempt_violated(x, e, "its rounds are outside of their window");
    return 0;
}

int exchanges_check(const struct exchanges *exchanges, struct error *e)
{
    uint64_t reserved = 0;
    unsigned tellable = 0, places = 0, asked = 0;

    if (exchanges->broken.code != ERROR_NONE) {
        *e = exchanges->broken;
        return -1;
    }
    for (const struct job *j = exchanges->jobs; j != NULL; j = j->next) {
        if (check_job(j, e) != 0)
            return -1;
        reserved += j->reserved;
        places += j->has_slot;
        asked += j->asked;
        tellable += job_is_tellable(j);
    }

    for (const struct attempt *x = exchanges->active; x != NULL; x = x->next) {
        if (state_of(x)->ended)
            return attempt_violated(x, e, "it is in the list of active attempts");
        if (check_one(x, e) != 0)
            return -1;
        reserved += x->local.reserved;
    }
    for (const struct attempt *x = exchanges->ended; x != NULL; x = x->next) {
        if (!state_of(x)->ended)
            return attempt_violated(x, e, "it is in the list of ended attempts");
        if (check_one(x, e) != 0)
            return -1;
    }
    if (reserved != exchanges_reserved(exchanges) || reserved > exchanges->set.memory_budget)
        return error_set(
            e, ERROR_PROTOCOL,
            "jobs and attempts hold %llu %s, but %llu are reserved, of a budget of %llu",
            (unsigned long long)reserved, text_plural(reserved, "byte", "bytes"),
            (unsigned long long)exchanges_reserved(exchanges),
            (unsigned long long)exchanges->set.memory_budget);
    if (places != shares_total(exchanges->set.shares, SHARE_STARTED) ||
        asked != shares_total(exchanges->set.shares, SHARE_EXCHANGES))
        return error_set(e, ERROR_PROTOCOL,
                         "%u exchanges of this node have places and %u were asked for, but %llu "
                         "and %llu are counted",
                         places, asked,
                         (unsigned long long)shares_total(exchanges->set.shares, SHARE_STARTED),
                         (unsigned long long)shares_total(exchanges->set.shares, SHARE_EXCHANGES));
    if (tellable != exchanges->tellable)
        return error_set(e, ERROR_PROTOCOL,
                         "%u %s to be told when an exchange ends, but the count is %u", tellable,
                         text_plural(tellable, "client is", "clients are"), exchanges->tellable);
    return 0;
}
