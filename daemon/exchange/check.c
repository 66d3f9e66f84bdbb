/* Checks the invariants that hold between two events. */
#include "daemon/exchange/exchange.h"

#include "daemon/base/shares.h"
#include "daemon/exchange/record/predicates.h"
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
        return job_violated(j, e, "an attempt of another job");
    if (job_is_under_way(j) && (x == NULL || state_of(x)->unheard || state_of(x)->ended))
        return job_violated(j, e, "without an attempt under way");
    if (job_waits(j) && x != NULL && (!job_states[j->state].starting || !state_of(x)->unheard))
        return job_violated(j, e, "with an attempt");
    if (job_has_ended(j) && x != NULL && !state_of(x)->ended)
        return job_violated(j, e, "with an attempt that goes on");
    if (j->last != NULL && (j->last->job != j || !state_of(j->last)->ended))
        return job_violated(j, e, "with a former attempt that goes on");
    if (j->reserved > 0 && (job_is_under_way(j) || !job_has_been_open(j)))
        return job_violated(j, e, "memory reserved without a group");
    if (job_has_ended(j) && j->placed)
        return job_violated(j, e, "with a place");
    return 0;
}

static int violated(const struct attempt *x, struct error *e, const char *what)
{
    return error_set(e, ERROR_PROTOCOL, "exchange %s is %s: %s", x->id.text, state_of(x)->name,
                     what);
}

static bool agrees(enum presence wanted, bool there)
{
    return wanted == MAY || (wanted == MUST) == there;
}

static int check_one(const struct attempt *x, struct error *e)
{
    const struct rounds *r = &x->rounds;

    if (attempt_is_root(x) ? !state_of(x)->root : !state_of(x)->other)
        return violated(x, e, "a state that this node cannot be in");
    if (attempt_is_root(x) && x->root != rank_of(x))
        return violated(x, e, "a root with another root");
    if (!agrees(state_of(x)->blocks, x->own.source != NULL) ||
        (x->own.source == NULL) != (x->own.sink == NULL))
        return violated(x, e, "blocks that should be there or gone");
    if (!agrees(state_of(x)->engine, x->own.engine != NULL))
        return violated(x, e, "an engine that should be there or gone");
    if (x->own.engine == NULL && x->own.reserved > 0 && !attempt_is_open_group(x))
        return violated(x, e, "memory reserved without an engine");
    if (!agrees(state_of(x)->owed, x->owed != 0))
        return violated(x, e, "parts of a wave owed, or not");
    if (x->state == EXCHANGE_FAILED && x->failure.code == ERROR_NONE)
        return violated(x, e, "without a reason");
    if (x->state == EXCHANGE_RUNNING &&
        (r->round > r->admitted || r->admitted > exchange_end_round(x) ||
         r->admitted > r->round + x->own.window || x->own.engine->rounds_finished > r->admitted))
        return violated(x, e, "rounds out of their window");
    return 0;
}

int exchanges_check(const struct exchanges *all, struct error *e)
{
    uint64_t reserved = 0;
    unsigned tellable = 0, places = 0, asked = 0;

    if (all->broken.code != ERROR_NONE) {
        *e = all->broken;
        return -1;
    }
    for (const struct job *j = all->jobs; j != NULL; j = j->next) {
        if (check_job(j, e) != 0)
            return -1;
        reserved += j->reserved;
        places += j->placed;
        asked += j->asked;
        tellable += job_is_tellable(j);
    }

    for (const struct attempt *x = all->active; x != NULL; x = x->next) {
        if (state_of(x)->ended)
            return violated(x, e, "among the active ones");
        if (check_one(x, e) != 0)
            return -1;
        reserved += x->own.reserved;
    }
    for (const struct attempt *x = all->ended; x != NULL; x = x->next) {
        if (!state_of(x)->ended)
            return violated(x, e, "among the ended ones");
        if (check_one(x, e) != 0)
            return -1;
    }
    if (reserved != exchanges_reserved(all) || reserved > all->set.memory_budget)
        return error_set(e, ERROR_PROTOCOL, "%llu %s reserved, not %llu of %llu",
                         (unsigned long long)reserved,
                         text_plural(reserved, "byte is", "bytes are"),
                         (unsigned long long)exchanges_reserved(all),
                         (unsigned long long)all->set.memory_budget);
    if (places != shares_total(all->set.shares, SHARE_TURNS) ||
        asked != shares_total(all->set.shares, SHARE_EXCHANGES))
        return error_set(
            e, ERROR_PROTOCOL,
            "%u exchanges of this node have places, and %u are asked for, not %llu and "
            "%llu",
            places, asked, (unsigned long long)shares_total(all->set.shares, SHARE_TURNS),
            (unsigned long long)shares_total(all->set.shares, SHARE_EXCHANGES));
    if (tellable != all->tellable)
        return error_set(e, ERROR_PROTOCOL, "%u %s to be notified, not %u", tellable,
                         text_plural(tellable, "client is", "clients are"), all->tellable);
    return 0;
}
