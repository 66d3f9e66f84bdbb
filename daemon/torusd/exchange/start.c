/* Decides when a job that was asked for at this node is started: in the order of asking, a few at a time, when
 * there is memory for it. If another node has no memory, or a link goes down, the attempt is withdrawn on all
 * nodes, and the job retries later under a new id (abort.c). */
#include "daemon/torusd/exchange/start.h"

#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/exchange/abort.h"
#include "daemon/torusd/exchange/choose_routes.h"
#include "daemon/torusd/exchange/decisions.h"
#include "daemon/torusd/exchange/entry.h"
#include "daemon/torusd/exchange/exchange.h"
#include "daemon/torusd/exchange/fault_watch.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/local_resources.h"
#include "daemon/torusd/exchange/membership.h"
#include "daemon/torusd/exchange/plan_rates.h"
#include "daemon/torusd/exchange/prepare.h"
#include "daemon/torusd/exchange/status.h"
#include "daemon/torusd/exchange/tracing.h"
#include "daemon/torusd/planning/schedule_store.h"
#include "proto/frame.h"

/* Most jobs of this node under way, barriers not counted. One user may have four of them (base/shares.h), and
 * at least four users get a slot. Other nodes accept twice as many of one root (prepare_heard.c). */
#define OWN_AT_ONCE 8u
#define ALL_AT_ONCE 64u  /* attempts of all nodes together */
#define ASKED_MOST 1024u /* jobs waiting or under way that were asked for here */
#define USERS_HELD 16u   /* users that wait for memory, in one pass over the queue */

void start_queue_set_capacities(struct shares *shares)
{
    shares_set_capacity(shares, SHARE_STARTED, OWN_AT_ONCE);
    shares_set_capacity(shares, SHARE_EXCHANGES, ASKED_MOST);
}

/* Sets *e: links are down, and what is asked for cannot avoid them. Returns -1. */
static int start_queue_refuse_links(const struct exchanges *exchanges, struct error *e)
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

/* Makes the attempt avoid the links that are down now, and use the others by their rates, unless it is faster not to
 * use the rates. Returns 1; 0 while schedules are counted; or -1 with *e. */
static int avoid_links(struct attempt *x, struct error *e)
{
    const struct left_out out = membership_left_out_next(x->job);
    struct damage damage;
    int result = -1;

    x->planned_at = x->exchanges->rates.changes;
    if (membership_view(x->exchanges, out, &damage, e) != 0)
        return -1;
    const bool fits = damage_is_none(&damage) ||
                      (membership_check(x->exchanges, out, &damage, e) == 0 && x->avoids_links);
    if (!fits && !x->avoids_links)
        (void)start_queue_refuse_links(x->exchanges, e);
    if (fits && plan_rates_add(x->exchanges, &x->spec, &damage, e) == 0)
        result = choose_whether_rated(x, &damage, e);
    if (result > 0)
        return avoided_set(x, &damage, e) == 0 ? 1 : -1;
    damage_free(&damage);
    return result;
}

/* Whether to wait a moment before leaving out a node that cannot be reached: it may have a link that is up
 * again, and this node may not have heard of it yet. */
static bool awaits_news(struct attempt *x)
{
    uint64_t converged_at = x->exchanges->changed_at + LINK_LOSS_GATHER_TIME;

    if (!membership_left_out(x).down || avoided_nodes(x) == torus_of(x)->nodes ||
        router_now(router_of(x)) >= converged_at)
        return false;
    x->job->retry_at = converged_at;
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
    x->from_begin = kind_of(x)->has_session && j->damages > 0;
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
    if (x->local.source->irregular)
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

    if (x->spec.timeout_ns == 0 || attempt_is_open_group(x)) {
        x->timeout_ns = prepare_default_timeout(x);
        x->deadline = router_now(router_of(x)) + x->timeout_ns;
    }
    attempt_enter(x, x->local.source->irregular ? EXCHANGE_OPENING : EXCHANGE_PREPARING);
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
    result = x != NULL ? avoid_links(x, &e) : -1;
    if (result < 0 && e.code == ERROR_LINK && job_survives_link_loss(j)) {
        job_drop_attempt(j);
        job_watch_topology(j); /* sets how long the job waits for the links */
        return job_has_ended(j) ? 1 : 0;
    }
    if (result > 0 && awaits_news(x))
        return 0;
    if (result > 0)
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
        if (memory && retry_lacks_memory_too_long(j)) {
            begin_attempt(x); /* it fails here, so that the other nodes hear of it */
            return 1;
        }
        try_later(j, !memory || j->spec.memory_wait_ns > 0);
        return memory ? -1 : 0; /* other jobs wait until memory is given back */
    }
    if (may_pass(j, &e)) {
        try_later(j, true);
        return 0;
    }
    job_fail(j, &e);
    return 1;
}

/* Whether the job waits for links that are down, or for the abort on them (fault_watch.c). */
static bool awaits_links(const struct job *j)
{
    return j->fault.at != ROUTER_NEVER && job_survives_link_loss(j);
}

static bool may_begin(const struct job *j)
{
    return j->state == JOB_WAITING && job_closing(j) == 0 && j->retry_at == 0 && !awaits_links(j);
}

/* Whether the job has begun, or waits for a schedule. */
static bool keeps_slot(const struct job *j)
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
static unsigned slots_left(const struct exchanges *exchanges)
{
    unsigned of_all = 0;

    for (const struct attempt *x = exchanges->active; x != NULL; x = x->next)
        of_all += kind_of(x)->takes_slot && !state_of(x)->unheard;
    if (of_all < ALL_AT_ONCE)
        return ALL_AT_ONCE - of_all;
    return shares_total(exchanges->set.shares, SHARE_STARTED) == 0;
}

/* Users whose first waiting job needs memory: their other jobs may not overtake that job, but jobs of other users
 * may. */
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

/* Returns whether the job has a slot now. */
static bool take_slot(struct job *j, const struct held *held)
{
    struct error e;

    if (is_held(held, j->user))
        return false;
    j->has_slot =
        j->has_slot || shares_take(j->exchanges->set.shares, SHARE_STARTED, j->user, 1, &e) == 0;
    return j->has_slot;
}

/* Goes through the list only once, because a thousand jobs may wait. It starts over when a job ends, because
 * that may end other jobs. A job that waits for its schedule keeps its slot, so at most as many jobs are tried
 * as there are slots. */
void start_queue_advance(struct exchanges *exchanges)
{
    uint64_t now = router_now(exchanges->set.router);
    unsigned slots = slots_left(exchanges);
    struct held held = {.count = 0};
    struct job *j;

    exchanges->start_due = false;
    for (j = exchanges->jobs; j != NULL; j = j->next)
        if (now >= j->retry_at)
            j->retry_at = 0;
    j = next_to_start(exchanges->jobs);
    while (j != NULL) {
        bool takes_slot = kind_of_spec(&j->spec)->takes_slot;
        if (!takes_slot || (slots > 0 && take_slot(j, &held))) {
            int begun = try_begin(j);
            if (takes_slot && begun < 0)
                held.user[held.count++] = j->user;
            if (takes_slot && (begun < 0 || !keeps_slot(j)))
                job_release_slot(j);
            slots -= j->has_slot;
        }
        j = next_to_start(job_has_ended(j) ? exchanges->jobs : j->next);
    }
    for (j = exchanges->jobs; j != NULL; j = j->next)
        if (j->state == JOB_WAITING)
            job_release_slot(j);
}

/* --- requests: checks whether what a client asks for is possible at this node, and makes the job --- */

#define DECISIONS_MOST 256u

/* Checks that what is asked for can be done with the links that are up. Returns 0, or -1 with *e. */
static int check_links(const struct exchanges *exchanges, const struct spec *spec, struct error *e)
{
    if (spec->wait || topology_whole(router_topology(exchanges->set.router)))
        return 0;
    if (!spec_avoids_links(spec))
        return start_queue_refuse_links(exchanges, e);
    return membership_check_now(exchanges, membership_left_out_of(spec), e);
}

/* Checks that not too many decisions are on record; each stays there until all nodes have confirmed. */
static int check_decisions(const struct exchanges *exchanges, const struct spec *spec,
                           struct error *e)
{
    unsigned n = decisions_count(exchanges);
    struct error first;

    if (!spec_has_folders(spec) || n < DECISIONS_MOST)
        return 0;
    unconfirmed_describe(exchanges->decisions, exchanges, &first);
    return error_set(
        e, ERROR_REFUSED,
        "%u exchanges that began here are not confirmed by all nodes yet; the last one: %s", n,
        first.text);
}

static int check_start(struct exchanges *exchanges, const struct spec *spec, struct error *e)
{
    const struct torus *t = router_torus(exchanges->set.router);
    const struct algorithm *algorithm;
    enum mode mode = spec->mode;

    if (spec_check(spec, t, e) != 0)
        return -1;
    if (spec->shrink && !spec_avoids_links(spec))
        return error_set(
            e, ERROR_USAGE,
            "only exchanges with algorithm auto can leave out nodes that are down; %s cannot",
            spec->algorithm);
    algorithm = choose_named(spec);
    if (algorithm != NULL && !spec_finds_routes(spec, t, true) &&
        spec_check_algorithm(spec, t, algorithm, &mode, e) != 0)
        return -1;
    if (check_links(exchanges, spec, e) != 0 || check_decisions(exchanges, spec, e) != 0)
        return -1;
    return 0;
}

/* Starts to use the schedule that the spec names, if any; a client must have given it to this node before. */
static int join_schedule(struct exchanges *exchanges, const struct spec *spec, uint32_t user,
                         struct schedule **s, struct error *e)
{
    *s = NULL;
    if (!spec_has_schedule(spec))
        return 0;
    *s = schedules_join(exchanges->schedules, spec->schedule, user, e);
    if (*s == NULL)
        return -1;
    if (schedule_is_complete(*s))
        return 0;
    schedules_leave(exchanges->schedules, *s);
    return error_set(e, ERROR_USAGE, "schedule %.8s has not been given to this node",
                     spec->schedule);
}

static struct job *add_job(struct exchanges *exchanges, struct spec *spec,
                           struct schedule *schedule, const struct exchange_client *client,
                           struct error *e)
{
    const struct job_kind *kind = kind_of_spec(spec);
    uint32_t rank = router_rank(exchanges->set.router);
    struct job *j;

    if (kind->takes_slot &&
        shares_take(exchanges->set.shares, SHARE_EXCHANGES, client->user, 1, e) != 0)
        return NULL;
    j = job_new(exchanges, spec, client);
    if (j == NULL) {
        if (kind->takes_slot)
            shares_give(exchanges->set.shares, SHARE_EXCHANGES, client->user, 1);
        (void)error_set(e, ERROR_MEMORY, "out of memory for an exchange");
        return NULL;
    }
    attempt_new_name(exchanges, &j->name);
    j->schedule = schedule;
    j->asked = kind->takes_slot;
    j->state =
        kind->is_entered && membership_root(exchanges, spec) != rank ? JOB_ENTERED : JOB_WAITING;
    j->timeout_ns = spec->timeout_ns > 0 ? spec->timeout_ns
                    : kind->is_entered   ? SPEC_LONGEST_TIMEOUT
                                         : LONGEST_WAIT;
    j->deadline = j->began + j->timeout_ns;
    j->entered_deadline = j->deadline;
    j->entered_timeout_ns = j->timeout_ns;
    return j;
}

/* Checks that this node is a member of the group, and agrees with others on its members. Returns 0, or -1 with *e. */
static int check_members(struct exchanges *exchanges, const struct spec *spec, struct error *e)
{
    const struct router *r = exchanges->set.router;

    if (kind_of_spec(spec)->has_session && entry_check_prepared(exchanges, spec, e) != 0)
        return -1;
    if (!spec_has_members(spec))
        return 0;
    if (!spec_is_member(spec, router_rank(r)))
        return error_set(e, ERROR_USAGE, "node %u is not one of the members, which are %.100s",
                         router_rank(r), spec->members);
    if (router_least_minor(r) >= MEMBERS_MINOR)
        return 0;
    return error_set(
        e, ERROR_REFUSED,
        "a group of some nodes needs version %u.%u of the peer protocol on all nodes, and a "
        "node has %u.%u: install the same release on all nodes",
        PROTOCOL_VERSION, MEMBERS_MINOR, PROTOCOL_VERSION, router_least_minor(r));
}

/* Enters what the root has already prepared and nobody has entered here. */
static struct job *enter_prepared(struct attempt *x, struct spec *spec,
                                  const struct exchange_client *client, struct error *e)
{
    struct job *j = entry_enter(x, spec, client, e);

    if (j != NULL && !entry_differs(x, &j->spec, &x->spec))
        attempt_advance(x);
    return j;
}

struct job *exchange_start(struct exchanges *exchanges, const struct spec *wanted,
                           const struct exchange_client *client, struct error *e)
{
    const bool entered = kind_of_spec(wanted)->is_entered;
    struct attempt *prepared;
    struct schedule *schedule;
    struct spec spec;
    struct job *j;

    if (spec_copy(&spec, wanted, e) != 0)
        return NULL;
    if (check_start(exchanges, &spec, e) != 0 || check_members(exchanges, &spec, e) != 0 ||
        join_schedule(exchanges, &spec, client->user, &schedule, e) != 0) {
        spec_free(&spec);
        return NULL;
    }
    prepared = entered ? entry_preparing(exchanges, &spec) : NULL;
    if (entered && entry_waiting(exchanges, &spec) != NULL) {
        (void)error_set(e, ERROR_REFUSED, "%s \"%s\" has been entered at this node already",
                        schedule_operation_name(spec.operation), spec.barrier);
        j = NULL;
    } else if (prepared != NULL) {
        j = enter_prepared(prepared, &spec, client, e);
    } else {
        j = add_job(exchanges, &spec, schedule, client, e);
    }
    if (j == NULL) {
        if (schedule != NULL)
            schedules_leave(exchanges->schedules, schedule);
        spec_free(&spec);
        return NULL;
    }
    if (prepared != NULL)
        return j;
    log_info("exchange %s: %s, %s%s, %s", exchange_id(j), schedule_operation_name(spec.operation),
             spec_has_schedule(&spec) ? "schedule " : spec.algorithm, spec.schedule,
             spec_has_folders(&spec) ? "folders" : "generated blocks");
    exchanges->start_due = true;
    start_queue_advance(exchanges);
    return j;
}
