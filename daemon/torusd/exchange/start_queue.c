/* Decides when a job that was asked for at this node is started: in the order of asking, a few at a time, when
 * there is memory for it. If another node has no memory, or a link goes down, the attempt is withdrawn on all
 * nodes, and the job retries later under a new id (abort/retry.c). */
#include "daemon/torusd/exchange/start_queue.h"

#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/base/shares.h"
#include "daemon/lib/schedule/damage.h"
#include "daemon/lib/schedule/tree.h"
#include "daemon/torusd/exchange/abort/fail.h"
#include "daemon/torusd/exchange/abort/retry.h"
#include "daemon/torusd/exchange/advance.h"
#include "daemon/torusd/exchange/phases/choose_routes.h"
#include "daemon/torusd/exchange/phases/entry.h"
#include "daemon/torusd/exchange/phases/job_watch.h"
#include "daemon/torusd/exchange/phases/prepare.h"
#include "daemon/torusd/exchange/record/absent.h"
#include "daemon/torusd/exchange/record/attempt_state.h"
#include "daemon/torusd/exchange/record/avoided.h"
#include "daemon/torusd/exchange/record/job.h"
#include "daemon/torusd/exchange/record/local_resources.h"
#include "daemon/torusd/exchange/record/membership.h"
#include "daemon/torusd/exchange/record/predicates.h"
#include "daemon/torusd/exchange/record/table.h"
#include "daemon/torusd/exchange/record/times.h"
#include "daemon/torusd/exchange/record/tracing.h"
#include "daemon/torusd/planning/schedule_store.h"

/* Most jobs of this node under way, barriers not counted. One user may have four of them (base/shares.h), and
 * at least four users get a place. Other nodes accept twice as many of one root (phases/prepare_check.c). */
#define OWN_AT_ONCE 8u
#define ALL_AT_ONCE 64u  /* attempts of all nodes together */
#define ASKED_MOST 1024u /* jobs waiting or under way that were asked for here */
#define USERS_HELD 16u   /* users that wait for memory, in one pass over the queue */

void start_queue_set_capacities(struct shares *shares)
{
    shares_set_capacity(shares, SHARE_STARTED, OWN_AT_ONCE);
    shares_set_capacity(shares, SHARE_EXCHANGES, ASKED_MOST);
}

int start_queue_refuse_links(const struct exchanges *exchanges, struct error *e)
{
    const struct topology *topology = router_topology(exchanges->set.router);
    bool links = topology_first_down(topology) == TORUS_NO_NODE;
    struct error fault = {.text = ""};

    (void)topology_fault(topology, 0, &fault);
    (void)error_set(
        e, ERROR_LINK, "the torus is not whole: %s%s", fault.text,
        links ? "; only barriers, groups, and exchanges with algorithm auto can avoid that" : "");
    e->culprit = fault.culprit;
    return -1;
}

/* Makes the attempt avoid the links that are down now. Returns 0, or -1 with *e. */
static int find_way(struct attempt *x, struct error *e)
{
    const struct left_out out = membership_left_out_next(x->job);
    struct damage damage;

    if (membership_view(x->exchanges, out, &damage, e) != 0)
        return -1;
    if (damage_is_none(&damage) ||
        (membership_check(x->exchanges, out, &damage, e) == 0 && x->avoids_links))
        return avoided_set(x, &damage, e);
    if (!x->avoids_links)
        (void)start_queue_refuse_links(x->exchanges, e);
    damage_free(&damage);
    return -1;
}

/* Whether to wait a moment before leaving out a node that cannot be reached: it may have a link that is up
 * again, and this node may not have heard of it yet. */
static bool awaits_news(struct attempt *x)
{
    uint64_t settled = x->exchanges->changed_at + LINK_LOSS_GATHER_TIME;

    if (!membership_left_out(x).down || avoided_nodes(x) == torus_of(x)->nodes ||
        router_now(router_of(x)) >= settled)
        return false;
    x->job->retry_at = settled;
    return true;
}

/* Returns the job's next attempt, which no other node knows of yet, or NULL with *e. It has a name of its own,
 * so that no message about an earlier attempt is taken for this one. */
static struct attempt *next_attempt(struct job *j, struct error *e)
{
    struct exchanges *exchanges = j->exchanges;
    uint32_t rank = router_rank(exchanges->set.router);
    struct attempt *x;

    if (j->attempt != NULL)
        return j->attempt;
    if (j->name_known) {
        attempt_new_name(exchanges, &j->name);
        j->name_known = false;
    }
    x = attempt_new(exchanges, &j->name, rank);
    if (x == NULL || spec_copy(&x->spec, &j->spec, e) != 0) {
        if (x != NULL)
            attempt_forget(x);
        (void)error_set(e, ERROR_MEMORY, "out of memory for an exchange");
        return NULL;
    }
    x->spec.repeat -= j->repetitions.kept;
    x->user = j->user;
    x->avoids_links = spec_avoids_links(&j->spec);
    x->resumes = j->resumes;
    tree_node(router_torus(exchanges->set.router), rank, rank, &x->tree);
    if (j->schedule != NULL) {
        x->schedule = schedules_join(exchanges->schedules, j->spec.schedule, j->user, e);
        if (x->schedule == NULL) {
            attempt_forget(x);
            return NULL;
        }
    }
    x->timeout_ns = j->timeout_ns;
    x->deadline = j->deadline;
    x->local.reserved = j->reserved;
    j->reserved = 0;
    x->job = j;
    j->attempt = x;
    tracing_begin(x);
    return x;
}

/* Closes what the attempt has opened, so that the job can be tried again later. */
static void try_later(struct job *j, bool pause)
{
    job_drop_attempt(j);
    if (pause)
        retry_pause(j);
}

/* Whether the error may go away: a node may be going down, and not all of its lost links are known yet. */
static bool may_pass(const struct job *j, const struct error *e)
{
    return e->code == ERROR_LINK && job_has_been_open(j) &&
           router_now(j->exchanges->set.router) <
               j->waiting_since + absent_report_time(j->exchanges);
}

/* Prepares the attempt at this node as far as possible. Returns 1 if that is complete; 0 while schedules are
 * counted or planned, or blocks are opened; or -1 with *e. */
static int make_ready(struct attempt *x, struct error *e)
{
    int result = spec_chooses_late(&x->spec) && !avoided_has_routes(x) ? 1 : choose_for(x, e);

    if (result > 0)
        result = local_resources_open(x, e);
    if (result < 0 || x->local.source == NULL)
        return result;
    if (x->local.source->sized)
        return 1;
    if (result > 0 &&
        (local_resources_choose_rounds(x, e) != 0 || local_resources_make_engine(x, e) < 0))
        result = -1;
    return result;
}

/* Starts the attempt; from now on other nodes know of it. */
static void begin_attempt(struct attempt *x)
{
    struct job *j = x->job;

    if (x->spec.timeout_ns == 0) {
        x->timeout_ns = prepare_default_timeout(x);
        x->deadline = router_now(router_of(x)) + x->timeout_ns;
    }
    attempt_enter(x, x->local.source->sized ? EXCHANGE_OPENING : EXCHANGE_PREPARING);
    job_begin(j);
    prepare_begin(x);
    attempt_advance(x);
}

/* Starts a job if everything is ready. Returns 1 if it has begun or failed; 0 if it cannot begin yet and jobs
 * behind it may; -1 if it needs memory, and no job may overtake it. */
static int try_begin(struct job *j)
{
    struct attempt *x;
    struct error e;
    int result;

    /* The first remaining node may have changed without a change of the topology. */
    entry_update_root(j);
    if (j->state != JOB_WAITING)
        return 0;
    x = next_attempt(j, &e);
    result = x != NULL ? find_way(x, &e) : -1;
    if (result < 0 && e.code == ERROR_LINK && job_survives_link_loss(j)) {
        job_drop_attempt(j);
        job_watch_topology(j); /* sets how long the job waits for the links */
        return job_has_ended(j) ? 1 : 0;
    }
    if (result == 0 && awaits_news(x))
        return 0;
    if (result == 0)
        result = make_ready(x, &e);
    if (result > 0) {
        begin_attempt(x);
        return 1;
    }
    if (result == 0)
        return 0;
    if (e.code == ERROR_BUSY) {
        bool memory = x != NULL && x->local.round_bytes > 0; /* otherwise a folder is busy */
        j->failure = e;
        try_later(j, !memory);
        return memory ? -1 : 0; /* other jobs wait until memory is given back */
    }
    if (may_pass(j, &e)) {
        try_later(j, true);
        return 0;
    }
    job_fail(j, &e);
    return 1;
}

/* Whether the job waits for links that are down, or for the verdict on them (phases/job_watch.c). */
static bool awaits_links(const struct job *j)
{
    return j->fault.at != ROUTER_NEVER && job_survives_link_loss(j);
}

static bool may_begin(const struct job *j)
{
    return j->state == JOB_WAITING && job_closing(j) == 0 && j->retry_at == 0 && !awaits_links(j);
}

/* Whether the job has begun, or waits for a schedule. */
static bool keeps_place(const struct job *j)
{
    return job_is_under_way(j) || may_begin(j);
}

/* Returns the first job from `j` on that may begin, in the order of asking. */
static struct job *next_to_start(struct job *j)
{
    while (j != NULL && !may_begin(j))
        j = j->next;
    return j;
}

/* Returns how many more jobs may start. A node may always have one of its own, however many other nodes have
 * under way. */
static unsigned places_left(const struct exchanges *exchanges)
{
    unsigned of_all = 0;

    for (const struct attempt *x = exchanges->active; x != NULL; x = x->next)
        of_all += kind_of(x)->takes_place && !state_of(x)->unheard;
    if (of_all < ALL_AT_ONCE)
        return ALL_AT_ONCE - of_all;
    return shares_total(exchanges->set.shares, SHARE_STARTED) == 0;
}

/* Users whose first waiting job needs memory: their other jobs may not overtake it, those of other users may. */
struct held {
    uint32_t user[USERS_HELD];
    unsigned count;
};

static bool is_held(const struct held *held, uint32_t user)
{
    for (unsigned i = 0; i < held->count; i++)
        if (held->user[i] == user)
            return true;
    return held->count == USERS_HELD;
}

/* Returns whether the job has a place now. */
static bool take_place(struct job *j, const struct held *held)
{
    struct error e;

    if (is_held(held, j->user))
        return false;
    j->placed =
        j->placed || shares_take(j->exchanges->set.shares, SHARE_STARTED, j->user, 1, &e) == 0;
    return j->placed;
}

/* Goes through the list only once, because a thousand jobs may wait. It starts over when a job ends, because
 * that may end other jobs. A job that waits for its schedule keeps its place, so at most as many jobs are tried
 * as there are places. */
void start_queue_advance(struct exchanges *exchanges)
{
    uint64_t now = router_now(exchanges->set.router);
    unsigned places = places_left(exchanges);
    struct held held = {.count = 0};
    struct job *j;

    exchanges->start_due = false;
    for (j = exchanges->jobs; j != NULL; j = j->next)
        if (now >= j->retry_at)
            j->retry_at = 0;
    j = next_to_start(exchanges->jobs);
    while (j != NULL) {
        bool takes_place = kind_of_spec(&j->spec)->takes_place;
        if (!takes_place || (places > 0 && take_place(j, &held))) {
            int begun = try_begin(j);
            if (takes_place && begun < 0)
                held.user[held.count++] = j->user;
            if (takes_place && (begun < 0 || !keeps_place(j)))
                job_give_place(j);
            places -= j->placed;
        }
        j = next_to_start(job_has_ended(j) ? exchanges->jobs : j->next);
    }
    for (j = exchanges->jobs; j != NULL; j = j->next)
        if (j->state == JOB_WAITING)
            job_give_place(j);
}
