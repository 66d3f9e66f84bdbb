#include "daemon/torusd/exchange/job.h"

#include <stdlib.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/local_resources.h"
#include "daemon/torusd/planning/schedule_store.h"

void job_release_slot(struct job *j)
{
    if (j->has_slot)
        shares_give(j->exchanges->set.shares, SHARE_STARTED, j->user, 1);
    j->has_slot = false;
}

static void leave_queue(struct job *j)
{
    j->exchanges->start_due |= j->has_slot;
    job_release_slot(j);
    if (j->asked && job_has_ended(j))
        shares_give(j->exchanges->set.shares, SHARE_EXCHANGES, j->user, 1);
    j->asked = j->asked && !job_has_ended(j);
}

void job_enter(struct job *j, enum job_state state)
{
    struct exchanges *exchanges = j->exchanges;

    if ((job_states[j->state].next & 1u << state) == 0 && exchanges->broken.code == ERROR_NONE) {
        (void)error_set(&exchanges->broken, ERROR_PROTOCOL,
                        "the job of exchange %s changes from %s to %s, which its table forbids",
                        j->name.id.text, job_states[j->state].name, job_states[state].name);
        log_error("%s: this is a bug", exchanges->broken.text);
    }
    j->state = state;
    if (state == JOB_WAITING || state == JOB_ENDED)
        leave_queue(j);
}

struct job *job_new(struct exchanges *exchanges, struct spec *spec,
                    const struct exchange_client *client)
{
    struct job *j = calloc(1, sizeof *j);

    if (j == NULL)
        return NULL;
    j->exchanges = exchanges;
    j->spec = *spec;
    j->user = client->user;
    j->client_state = CLIENT_WAITING;
    j->client = *client;
    j->began = j->waiting_since = router_now(exchanges->set.router);
    j->fault = NO_FAULT;
    DL_APPEND(exchanges->jobs, j);
    return j;
}

void job_free(struct job *j)
{
    if (j->attempt != NULL)
        j->attempt->job = NULL;
    if (j->last != NULL)
        j->last->job = NULL;
    if (j->schedule != NULL)
        schedules_leave(j->exchanges->schedules, j->schedule);
    DL_DELETE(j->exchanges->jobs, j);
    spec_free(&j->spec);
    free(j->repetitions.each);
    free(j);
}

/* Lets the earlier attempt go; it is kept only for late messages. */
static void leave_last(struct job *j)
{
    if (j->last != NULL)
        j->last->job = NULL;
    j->last = NULL;
}

void job_drop_attempt(struct job *j)
{
    struct attempt *x = j->attempt;

    j->attempt = NULL;
    if (x == NULL)
        return;
    local_resources_release_engine(x);
    local_resources_close(x, false);
    j->reserved = x->local.reserved;
    x->local.reserved = 0;
    x->job = NULL;
    attempt_free_when_closed(x);
}

void job_begin(struct job *j)
{
    leave_last(j);
    j->fault = NO_FAULT;
    j->failure.code = ERROR_NONE;
    j->name_known = true;
    job_enter(j, JOB_UNDER_WAY);
}

void job_set_attempt(struct job *j, struct attempt *x)
{
    x->job = j;
    j->attempt = x;
    x->local.reserved = j->reserved;
    j->reserved = 0;
    j->name = (struct attempt_name){.id = x->id, .handle = x->handle};
    job_begin(j);
}

/* Returns the id of the job's first attempt, as far as it is known. */
static const struct exchange_id *first_id(const struct job *j)
{
    if (!exchange_id_is_none(&j->resumes))
        return &j->resumes;
    return j->attempt != NULL ? attempt_first_id(j->attempt) : &j->name.id;
}

static void end_job(struct job *j)
{
    struct exchanges *exchanges = j->exchanges;
    const struct job_kind *kind = kind_of_spec(&j->spec);

    if (j->reserved > 0)
        shares_give(exchanges->set.shares, kind->share, j->user, j->reserved);
    j->reserved = 0;
    job_enter(j, JOB_ENDED);
    if (kind->forget != NULL)
        kind->forget(exchanges, first_id(j));
    exchanges->tellable += job_is_tellable(j);
    exchanges->start_due = true;
}

/* Makes an attempt that records the end of a job that never had one. Returns NULL if there is no memory. */
static struct attempt *record_end(struct job *j)
{
    struct attempt *x = attempt_new(j->exchanges, &j->name, router_rank(j->exchanges->set.router));
    struct error e;

    if (x != NULL && spec_copy(&x->spec, &j->spec, &e) != 0) {
        attempt_forget(x);
        return NULL;
    }
    if (x != NULL)
        tree_node(torus_of(x), x->root, x->root, &x->tree);
    return x;
}

static void end_as(struct job *j, struct attempt *x, const struct error *why)
{
    job_drop_attempt(j);
    j->failure = *why;
    if (x == NULL)
        x = record_end(j);
    if (j->last != NULL && j->last != x)
        j->last->job = NULL;
    j->last = NULL;
    j->attempt = x;
    if (x != NULL) {
        x->failure = *why;
        attempt_enter(x, EXCHANGE_FAILED);
        x->job = j;
    }
    end_job(j);
}

void job_end_failed(struct job *j, const struct error *why)
{
    bool own = j->last != NULL && (attempt_is_root(j->last) || job_has_been_open(j));

    end_as(j, own ? j->last : NULL, why);
}

void job_end_by_abort(struct job *j, const struct error *why)
{
    end_as(j, j->last, why);
}

/* Continues the job of a withdrawn attempt: its root retries; elsewhere a job that was entered waits for the
 * retry. */
static void continue_job(struct attempt *x)
{
    struct job *j = x->job;
    bool open = attempt_is_open_group(x), root = attempt_is_root(x);
    uint64_t now = router_now(j->exchanges->set.router);
    /* Only a client waits for a barrier or group that has not begun on all nodes. */
    bool waits =
        root || open ||
        (kind_of(x)->is_entered && x->rounds.first_go_at == 0 && j->client_state == CLIENT_WAITING);

    j->name = (struct attempt_name){.id = x->id, .handle = x->handle};
    j->name_known = true;
    if (!waits) {
        end_job(j);
        return;
    }
    j->attempt = NULL;
    j->last = x;
    j->reserved = x->local.reserved;
    x->local.reserved = 0;
    if (open && exchange_id_is_none(&j->resumes))
        j->resumes = *attempt_first_id(x);
    if (root) {
        /* The next attempt avoids what is down now, or waits for it. */
        j->fault = job_survives_link_loss(j) ? NO_FAULT : x->fault;
        job_enter(j, JOB_WAITING);
        return;
    }
    j->fault = UNCHECKED_FAULT;
    j->timeout_ns = open ? SPEC_LONGEST_TIMEOUT : j->entered_timeout_ns;
    j->deadline = open ? now + j->timeout_ns : j->entered_deadline;
    j->asks_at = now + ASK_TIME;
    if (!open) { /* the next attempt's id is unknown here, so the job gets a name of this node */
        attempt_new_name(j->exchanges, &j->name);
        j->name_known = false;
    }
    job_enter(j, JOB_ENTERED);
}

void attempt_end(struct attempt *x, enum exchange_state state)
{
    bool had_ended = state_of(x)->ended;

    attempt_enter(x, state);
    if (x->job == NULL || had_ended)
        return;
    if (state == EXCHANGE_WITHDRAWN)
        continue_job(x);
    else if (x->job->attempt == x)
        end_job(x->job);
}
