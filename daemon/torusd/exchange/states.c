#include "daemon/torusd/exchange/states.h"

#include <string.h>

#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/torusd/exchange/job.h"

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
                          .before_go = true, .awaits_abort = true, .over = true},
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

/* --- kinds of jobs --- */

static uint64_t no_memory(const struct exchanges *exchanges)
{
    (void)exchanges;
    return 0;
}

static uint64_t session_memory(const struct exchanges *exchanges)
{
    return exchanges->set.sessions.memory;
}

static void forget_session(struct exchanges *exchanges, const struct exchange_id *first)
{
    if (exchanges->set.sessions.forget != NULL)
        exchanges->set.sessions.forget(exchanges->set.sessions.context, first->text);
}

static const struct job_kind exchange = {
    .has_blocks = true,
    .retries_running = true,
    .takes_slot = true,
    .share = SHARE_TRANSIT,
};

static const struct job_kind barrier = {
    .is_entered = true,
    .tells_arrivals = true,
    .share = SHARE_TRANSIT,
    .memory = no_memory,
};

static const struct job_kind group = {
    .is_entered = true,
    .has_session = true,
    .retries_running = true,
    .first_remaining_leads = true,
    .share = SHARE_GROUPS,
    .memory = session_memory,
    .forget = forget_session,
};

const struct job_kind *kind_of_operation(enum schedule_operation operation)
{
    switch (operation) {
    case OPERATION_BARRIER:
        return &barrier;
    case OPERATION_GROUP:
        return &group;
    default:
        return &exchange;
    }
}

/* --- questions that many places ask --- */

bool attempt_is_open_group(const struct attempt *x)
{
    return kind_of(x)->has_session &&
           (!exchange_id_is_none(&x->resumes) || x->rounds.first_go_at != 0);
}

bool attempt_is_passive(const struct attempt *x)
{
    return spec_has_members(&x->spec) && !spec_is_member(&x->spec, rank_of(x));
}

bool attempt_awaits_entry(const struct attempt *x)
{
    return kind_of(x)->is_entered && x->state == EXCHANGE_PREPARING;
}

bool attempt_all_entered(const struct attempt *x)
{
    return x->rounds.first_go_at != 0 || !exchange_id_is_none(&x->resumes);
}

bool job_has_been_open(const struct job *j)
{
    return kind_of_spec(&j->spec)->has_session &&
           (!exchange_id_is_none(&j->resumes) ||
            (j->attempt != NULL && j->attempt->rounds.first_go_at != 0));
}

bool job_awaits_restart(const struct job *j)
{
    return j->state == JOB_ENTERED && job_has_been_open(j);
}

const struct exchange_id *attempt_first_id(const struct attempt *x)
{
    return !exchange_id_is_none(&x->resumes) ? &x->resumes : &x->id;
}

bool attempt_may_be_followed(const struct attempt *x)
{
    return x->state == EXCHANGE_WITHDRAWN || state_of(x)->awaits_abort ||
           (x->state == EXCHANGE_FAILED && x->failure.code == ERROR_BUSY && !attempt_is_root(x));
}

bool attempt_may_resume(const struct attempt *x)
{
    return (x->avoids_links || spec_uses_rates(&x->spec)) &&
           x->spec.operation == OPERATION_EXCHANGE && x->spec.repeat == 1 &&
           (x->mode == MODE_STREAMING || !spec_has_folders(&x->spec));
}

bool error_is_temporary(const struct error *e)
{
    return e->code == ERROR_LINK || e->code == ERROR_BUSY || e->code == ERROR_DAMAGED;
}

/* --- links and nodes that are down --- */

bool spec_avoids_links(const struct spec *spec)
{
    if (!kind_of_spec(spec)->has_blocks)
        return true; /* waves work over any tree */
    return spec->operation == OPERATION_EXCHANGE && !spec_has_schedule(spec) &&
           strcmp(spec->algorithm, SPEC_AUTO) == 0;
}

bool spec_uses_rates(const struct spec *spec)
{
    const char *found = spec->operation == OPERATION_EXCHANGE ? FOUND_NAME : FOUND_DISJOINT_NAME;

    if (kind_of_spec(spec)->has_session)
        return true;
    return kind_of_spec(spec)->has_blocks && !spec_has_schedule(spec) &&
           (strcmp(spec->algorithm, SPEC_AUTO) == 0 || strcmp(spec->algorithm, found) == 0);
}

/* An attempt with spec.wait does not fail when a node or link that it needs goes down. Its root withdraws it,
 * as it does to avoid a link (abort.c), and starts the next attempt when what it needs is up again, until
 * its timeout. So restarting a daemon other than the root's does not fail it. After the decision to commit, its
 * client also waits for nodes that are down, and hears of success when these have confirmed. */
bool attempt_waits_for_nodes(const struct attempt *x)
{
    return x->spec.wait && !attempt_is_open_group(x);
}

bool job_waits_for_nodes(const struct job *j)
{
    return j->spec.wait && !job_has_been_open(j);
}

bool attempt_survives_link_loss(const struct attempt *x)
{
    return x->avoids_links || attempt_waits_for_nodes(x);
}

bool job_survives_link_loss(const struct job *j)
{
    return spec_avoids_links(&j->spec) || job_waits_for_nodes(j);
}

/* --- the end --- */

unsigned job_closing(const struct job *j)
{
    return (j->attempt != NULL ? j->attempt->local.closing : 0) +
           (j->last != NULL ? j->last->local.closing : 0);
}

bool job_is_tellable(const struct job *j)
{
    return job_has_ended(j) && j->client_state == CLIENT_WAITING && job_closing(j) == 0;
}
