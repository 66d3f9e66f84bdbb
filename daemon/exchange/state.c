#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/internal.h"
#include "proto/text.h"

#define S(state) (1u << EXCHANGE_##state)
const struct attempt_state attempt_states[EXCHANGE_STATES] = {
    [EXCHANGE_WAITING] = {"waiting", .root = false}, /* jobs are, not attempts */
    [EXCHANGE_ENTERED] = {"entered", .root = false},
    [EXCHANGE_STARTING] = {"starting", S(OPENING) | S(PREPARING) | S(FAILED), NONE, NONE, NONE,
                           true, false, .unheard = true},
    [EXCHANGE_OPENING] = {"opening",
                          S(OPENED) | S(PREPARING) | S(FAILING) | S(WITHDRAWN) | S(FAILED), MAY,
                          NONE, MUST, true, true, .prepares = true},
    [EXCHANGE_OPENED] = {"opened", S(PREPARING) | S(FAILING) | S(WITHDRAWN) | S(FAILED), MUST, NONE,
                         NONE, false, true},
    [EXCHANGE_PREPARING] = {"preparing",
                            S(READY) | S(RUNNING) | S(FAILING) | S(WITHDRAWN) | S(FAILED), MAY, MAY,
                            MUST, true, true, .prepares = true, .before_go = true},
    [EXCHANGE_READY] = {"ready", S(RUNNING) | S(FAILING) | S(WITHDRAWN) | S(FAILED), MUST, MUST,
                        NONE, false, true, .before_go = true},
    [EXCHANGE_RUNNING] = {"running",
                          S(PAUSED) | S(DONE) | S(DECIDING) | S(FINISHED) | S(COMMITTED) |
                              S(FAILING) | S(WITHDRAWN) | S(FAILED),
                          MUST, MUST, MAY, true, true, .runs = true, .moves = true,
                          .repairs = true},
    [EXCHANGE_PAUSED] = {"paused", S(RUNNING) | S(FAILING) | S(WITHDRAWN) | S(FAILED), MUST, MUST,
                         NONE, true, true, .runs = true},
    [EXCHANGE_DONE] = {"done", S(COMMITTING) | S(WITHDRAWN) | S(FAILED) | S(IN_DOUBT), MUST, NONE,
                       NONE, false, true, .repairs = true, .may_be_committed = true},
    [EXCHANGE_DECIDING] = {"deciding", S(COMMITTING) | S(FAILED), MUST, NONE, NONE, true, false,
                           .may_be_committed = true, .decided = true},
    [EXCHANGE_COMMITTING] = {"committing", S(COMMITTED) | S(IN_DOUBT), MAY, NONE, MAY, true, true,
                             .may_be_committed = true, .decided = true},
    [EXCHANGE_FAILING] = {"failing", S(WITHDRAWN) | S(FAILED), NONE, NONE, NONE, false, true,
                          .before_go = true, .awaits_verdict = true, .over = true},
    [EXCHANGE_FINISHED] = {"finished", S(WITHDRAWN) | S(FAILED), NONE, NONE, NONE, false, true,
                           .over = true, .ended = true},
    [EXCHANGE_COMMITTED] = {"committed", 0, NONE, NONE, NONE, true, true, .over = true,
                            .ended = true},
    [EXCHANGE_WITHDRAWN] = {"withdrawn", S(FAILED), NONE, NONE, NONE, true, true, .over = true,
                            .ended = true},
    [EXCHANGE_FAILED] = {"failed", 0, NONE, NONE, NONE, true, true, .over = true, .ended = true},
    [EXCHANGE_IN_DOUBT] = {"in doubt", S(COMMITTED) | S(FAILED), NONE, NONE, NONE, false, true,
                           .may_be_committed = true, .over = true, .ended = true},
};

const char *exchange_state_name(enum exchange_state state)
{
    return state < EXCHANGE_STATES ? attempt_states[state].name : "unknown";
}

bool exchange_has_ended(enum exchange_state state)
{
    return attempt_states[state].ended;
}

static void tell_log(const struct attempt *x)
{
    switch (x->state) {
    case EXCHANGE_FINISHED:
        log_debug("exchange %s: this node has done its part", x->id);
        break;
    case EXCHANGE_COMMITTED:
        if (x->failure.code == ERROR_NONE)
            log_info("exchange %s: done", x->id);
        else
            log_warning("exchange %s: %s", x->id, x->failure.text);
        break;
    case EXCHANGE_WITHDRAWN:
        log_debug("exchange %s will be started again: %s", x->id, x->failure.text);
        break;
    case EXCHANGE_FAILED:
        log_warning("exchange %s failed: %s", x->id, x->failure.text);
        break;
    case EXCHANGE_IN_DOUBT:
        log_warning("exchange %s is in doubt (%s): its output is kept under its temporary name",
                    x->id, x->failure.text);
        break;
    default:
        break;
    }
}

void state_closed_one(struct attempt *x)
{
    if (--x->own.closing > 0)
        return;
    x->all->tellable += x->job != NULL && job_is_tellable(x->job);
    x->all->turns_due = true;
}

void attempt_enter(struct attempt *x, enum exchange_state state)
{
    struct exchanges *all = x->all;
    bool had_ended = state_of(x)->ended, ends = exchange_has_ended(state);

    if ((state_of(x)->next & 1u << state) == 0 && all->broken.code == ERROR_NONE) {
        (void)error_set(&all->broken, ERROR_PROTOCOL, "exchange %s goes from %s to %s", x->id,
                        state_of(x)->name, attempt_states[state].name);
        log_error("%s: this is a bug", all->broken.text);
    }
    x->state = state;
    if (attempt_states[state].owed == NONE)
        x->owed = 0;
    if (ends && !had_ended) {
        DL_DELETE(all->active, x);
        DL_APPEND(all->ended, x);
        all->active_count--;
        all->ended_count++;
    }
    if (attempt_states[state].engine == NONE)
        opening_release_engine(x);
    if (attempt_states[state].blocks == NONE)
        opening_close(x, state == EXCHANGE_IN_DOUBT);
    if (state == EXCHANGE_FAILED && !resume_may_follow(x))
        resume_drop(x);
    if (ends && !had_ended)
        all->turns_due = true;
    if (x->job != NULL && ends && !had_ended) {
        if (state == EXCHANGE_WITHDRAWN)
            job_withdrawn(x);
        else
            job_ended(x);
    }
    tell_log(x);
}

/* --- invariants --- */

static int violated(const struct attempt *x, struct error *e, const char *what)
{
    return error_set(e, ERROR_PROTOCOL, "exchange %s is %s: %s", x->id, state_of(x)->name, what);
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
        if (job_check(j, e) != 0)
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
