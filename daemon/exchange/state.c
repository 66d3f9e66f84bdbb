#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/internal.h"
#include "proto/text.h"

#define S(state) (1u << EXCHANGE_##state)
#define ACTIVE                                                                                     \
    (S(WAITING) | S(ENTERED) | S(OPENING) | S(OPENED) | S(PREPARING) | S(READY) | S(RUNNING) |     \
     S(PAUSED) | S(DONE) | S(DECIDING) | S(COMMITTING) | S(FAILING))

enum presence { NONE, MAY, MUST };

/* `next`: the states that may follow. The rest is the state's invariant. */
static const struct {
    const char *name;
    uint32_t next;
    enum presence blocks; /* source and sink */
    enum presence engine; /* and memory reserved for it */
    enum presence owed;   /* parts of a wave */
    bool root, other;     /* which nodes can be in it */
} states[EXCHANGE_STATES] = {
    [EXCHANGE_WAITING] = {"waiting", S(OPENING) | S(PREPARING) | S(ENTERED) | S(FAILED), NONE, NONE,
                          NONE, true, false},
    [EXCHANGE_ENTERED] = {"entered", S(PREPARING) | S(WAITING) | S(FAILED), NONE, NONE, NONE, true,
                          true},
    [EXCHANGE_OPENING] = {"opening", S(OPENED) | S(PREPARING) | S(WAITING) | S(FAILING) | S(FAILED),
                          MAY, NONE, MUST, true, true},
    [EXCHANGE_OPENED] = {"opened", S(PREPARING) | S(FAILING) | S(FAILED), MUST, NONE, NONE, false,
                         true},
    [EXCHANGE_PREPARING] = {"preparing",
                            S(READY) | S(RUNNING) | S(WAITING) | S(ENTERED) | S(FAILING) |
                                S(FAILED),
                            MAY, MAY, MUST, true, true},
    [EXCHANGE_READY] = {"ready", S(RUNNING) | S(ENTERED) | S(FAILING) | S(FAILED), MUST, MUST, NONE,
                        false, true},
    [EXCHANGE_RUNNING] = {"running",
                          S(PAUSED) | S(DONE) | S(DECIDING) | S(FINISHED) | S(COMMITTED) |
                              S(WAITING) | S(ENTERED) | S(FAILING) | S(FAILED),
                          MUST, MUST, MAY, true, true},
    [EXCHANGE_PAUSED] = {"paused", S(RUNNING) | S(WAITING) | S(FAILING) | S(FAILED), MUST, MUST,
                         NONE, true, true},
    [EXCHANGE_DONE] = {"done", S(COMMITTING) | S(FAILED) | S(IN_DOUBT), MUST, NONE, NONE, false,
                       true},
    [EXCHANGE_DECIDING] = {"deciding", S(COMMITTING) | S(FAILED), MUST, NONE, NONE, true, false},
    [EXCHANGE_COMMITTING] = {"committing", S(COMMITTED) | S(IN_DOUBT), MAY, NONE, MAY, true, true},
    [EXCHANGE_FAILING] = {"failing", S(ENTERED) | S(FAILED), NONE, NONE, NONE, false, true},
    [EXCHANGE_FINISHED] = {"finished", S(FAILED), NONE, NONE, NONE, false, true},
    [EXCHANGE_COMMITTED] = {"committed", 0, NONE, NONE, NONE, true, true},
    [EXCHANGE_FAILED] = {"failed", 0, NONE, NONE, NONE, true, true},
    [EXCHANGE_IN_DOUBT] = {"in doubt", S(COMMITTED) | S(FAILED), NONE, NONE, NONE, false, true},
};

const char *exchange_state_name(enum exchange_state state)
{
    return state < EXCHANGE_STATES ? states[state].name : "unknown";
}

bool exchange_has_ended(enum exchange_state state)
{
    return (ACTIVE & 1u << state) == 0;
}

static void tell_log(const struct exchange *x)
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
    case EXCHANGE_FAILED:
        if (x->failure.code == ERROR_BUSY)
            log_debug("exchange %s will be started again: %s", x->id, x->failure.text);
        else
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

static void count_tellable(struct exchange *x)
{
    if (exchange_has_ended(x->state) && x->client_state == CLIENT_WAITING && x->own.closing == 0)
        x->all->tellable++;
}

void state_closed_one(struct exchange *x)
{
    if (--x->own.closing > 0)
        return;
    count_tellable(x);
    x->all->turns_due = true;
}

void exchange_enter(struct exchange *x, enum exchange_state state)
{
    struct exchanges *all = x->all;
    bool had_ended = exchange_has_ended(x->state), ends = exchange_has_ended(state);

    if ((states[x->state].next & 1u << state) == 0 && all->broken.code == ERROR_NONE) {
        (void)error_set(&all->broken, ERROR_PROTOCOL, "exchange %s goes from %s to %s", x->id,
                        states[x->state].name, states[state].name);
        log_error("%s: this is a bug", all->broken.text);
    }
    x->state = state;
    if (states[state].owed == NONE)
        x->owed = 0;
    if (ends && !had_ended) {
        DL_DELETE(all->active, x);
        DL_APPEND(all->ended, x);
        all->active_count--;
        all->ended_count++;
    }
    if (ends || state == EXCHANGE_WAITING)
        turn_leave(x);
    if (states[state].engine == NONE)
        opening_release_engine(x);
    if (states[state].blocks == NONE)
        opening_close(x, state == EXCHANGE_IN_DOUBT);
    if (state == EXCHANGE_FAILED && !resume_may_follow(x))
        resume_drop(x);
    if (ends && !had_ended) {
        if (x->spec.operation == OPERATION_GROUP && all->set.sessions.forget != NULL)
            all->set.sessions.forget(all->set.sessions.context, resume_name(x));
        count_tellable(x);
        all->turns_due = true;
    }
    tell_log(x);
}

/* --- invariants --- */

static int violated(const struct exchange *x, struct error *e, const char *what)
{
    return error_set(e, ERROR_PROTOCOL, "exchange %s is %s: %s", x->id, states[x->state].name,
                     what);
}

static bool agrees(enum presence wanted, bool there)
{
    return wanted == MAY || (wanted == MUST) == there;
}

static int check_one(const struct exchange *x, struct error *e)
{
    const struct rounds *r = &x->rounds;

    if (exchange_is_root(x) ? !states[x->state].root : !states[x->state].other)
        return violated(x, e, "a state that this node cannot be in");
    if (exchange_is_root(x) && x->state != EXCHANGE_ENTERED && x->root != rank_of(x))
        return violated(x, e, "a root with another root");
    if (!agrees(states[x->state].blocks, x->own.source != NULL) ||
        (x->own.source == NULL) != (x->own.sink == NULL))
        return violated(x, e, "blocks that should be there or gone");
    if (!agrees(states[x->state].engine, x->own.engine != NULL))
        return violated(x, e, "an engine that should be there or gone");
    if (x->own.engine == NULL && x->own.reserved > 0 && !standing_is_one(x))
        return violated(x, e, "memory reserved without an engine");
    if (!agrees(states[x->state].owed, x->owed != 0))
        return violated(x, e, "parts of a wave owed, or not");
    if ((x->state == EXCHANGE_ENTERED || x->state == EXCHANGE_WAITING) && x->report.nodes > 0)
        return violated(x, e, "with a report of a former attempt");
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
    for (const struct exchange *x = all->active; x != NULL; x = x->next) {
        if (exchange_has_ended(x->state))
            return violated(x, e, "among the active ones");
        if (check_one(x, e) != 0)
            return -1;
        reserved += x->own.reserved;
        places += x->turn.placed;
        asked += x->turn.asked;
    }
    for (const struct exchange *x = all->ended; x != NULL; x = x->next) {
        if (!exchange_has_ended(x->state))
            return violated(x, e, "among the ended ones");
        if (check_one(x, e) != 0)
            return -1;
        tellable += x->client_state == CLIENT_WAITING && x->own.closing == 0;
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
