/* The states of attempts and of jobs: which state may follow which, what must hold, and properties of states. */
#include "daemon/torusd/exchange/record/states.h"

#include "daemon/torusd/exchange/interface/exchange_types.h"

#define S(state) (1u << EXCHANGE_##state)

const struct attempt_state attempt_states[EXCHANGE_STATES] = {
    [EXCHANGE_WAITING] = {"waiting", .root = false}, /* states of jobs, never of attempts */
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

#undef S

#define S(state) (1u << JOB_##state)

const struct job_state_row job_states[JOB_STATES] = {
    [JOB_WAITING] = {"waiting", S(UNDER_WAY) | S(ENTERED) | S(ENDED), .waits = true,
                     .starting = true},
    [JOB_ENTERED] = {"entered", S(UNDER_WAY) | S(WAITING) | S(ENDED), .waits = true},
    [JOB_UNDER_WAY] = {"under way", S(WAITING) | S(ENTERED) | S(ENDED), .under_way = true},
    [JOB_ENDED] = {"ended", 0, .ended = true},
};
