#include "daemon/torusd/copy/agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/copy/step_reports.h"
#include "daemon/torusd/router/router.h"
#include "proto/frame.h"
#include "proto/text.h"

void copy_id_text(uint64_t id, char text[COPY_ID_SIZE])
{
    (void)snprintf(text, COPY_ID_SIZE, "%016" PRIx64, id);
}

/* --- threads --- */

static bool works(const struct agent *a)
{
    return a->job_runs || moving_works(a);
}

/* The agent belongs to nobody any more: frees it when its threads have ended. */
static void free_detached(struct agent *a)
{
    if (works(a))
        return;
    copy_trees_close(a);
    agent_free(a);
}

static void on_woken(struct agent *a)
{
    if (a->due != NULL)
        *a->due = true;
    else
        free_detached(a);
}

/* What the thread does in a step. */
static void (*job_of(enum agent_step step))(struct agent *a)
{
    switch (step) {
    case STEP_OPEN:
        return copy_trees_open;
    case STEP_COMPARE:
        return copy_trees_compare;
    case STEP_DIGEST:
        return copy_trees_digest;
    case STEP_MISSING:
        return copy_trees_find_missing;
    case STEP_CHECK:
        return copy_trees_check;
    case STEP_FINISH:
        return copy_trees_finish;
    case STEP_ENDING:
        return copy_trees_close;
    default:
        return NULL;
    }
}

static void run_job(struct work *work)
{
    struct agent *a = (struct agent *)(void *)((char *)work - offsetof(struct agent, job));

    job_of(a->job_step)(a);
}

/* A step that has ended early does not wait for its job. */
static void note_job_end(struct agent *a)
{
    a->job_runs = false;
    a->job_done = a->step == a->job_step;
}

static void on_job_done(struct work *work)
{
    struct agent *a = (struct agent *)(void *)((char *)work - offsetof(struct agent, job));

    note_job_end(a);
    agent_wake(a);
}

static void start_job(struct agent *a)
{
    a->job_step = a->step;
    atomic_store(&a->progress.files, 0);
    atomic_store(&a->progress.bytes, 0);
    a->job = (struct work){.run = run_job, .done = on_job_done};
    a->job_runs = true;
    if (workers_submit(a->set.workers, &a->job) == 0)
        return;
    run_job(&a->job); /* no memory for a thread */
    note_job_end(a);
}

/* --- the end --- */

void agent_give_up(struct agent *a, const struct error *why)
{
    struct group *group = a->group;
    const bool opened = a->opened;

    if (a->step == STEP_ENDING)
        return;
    agent_end_early(a, why);
    a->refuses = false; /* the initiator caused this */
    if (group != NULL && opened)
        group_abandon(group, why);
    else if (group != NULL)
        group_close(group);
}

bool agent_is_gone(const struct agent *a)
{
    return a->step == STEP_ENDING && a->job_done;
}

static void give_memory_back(struct agent *a)
{
    if (a->call_bytes > 0)
        shares_give(a->set.shares, SHARE_COPIES, a->request.user,
                    (uint64_t)COPY_SLOTS * a->call_bytes);
    a->call_bytes = 0;
}

void agent_free(struct agent *a)
{
    if (a->due != NULL)
        give_memory_back(a);
    step_report_gathering_end(a);
    moving_end(a);
    copy_plan_free(&a->plan);
    copy_request_free(&a->request);
    free(a->node);
    free(a->member);
    free(a);
}

void agent_detach(struct agent *a)
{
    atomic_store(&a->progress.stop, true);
    give_memory_back(a);
    a->group = NULL;
    a->due = NULL;
    a->copy = NULL;
    a->step = STEP_ENDING;
    free_detached(a);
}

/* --- beginning --- */

/* Reserves memory for rounds: less of it, if there is not enough for large ones. At most half of what the user may
 * still take, so that the user's next copies find some, too. */
static int take_memory(struct agent *a, struct error *e)
{
    const uint64_t held = shares_of(a->set.shares, SHARE_COPIES, a->request.user);
    const uint64_t limit = shares_limit(a->set.shares, SHARE_COPIES, a->request.user);
    const uint64_t most = limit > held ? (limit - held) / 2 : 0;

    for (uint32_t bytes = COPY_CALL_MOST; bytes >= COPY_CALL_LEAST; bytes /= 2)
        if ((bytes == COPY_CALL_LEAST || (uint64_t)COPY_SLOTS * bytes <= most) &&
            shares_take(a->set.shares, SHARE_COPIES, a->request.user, (uint64_t)COPY_SLOTS * bytes,
                        e) == 0) {
            a->call_bytes = bytes;
            return 0;
        }
    return -1;
}

struct agent *agent_new(const struct agent_setup *setup, struct error *e)
{
    struct agent *a = calloc(1, sizeof *a);

    if (a == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for a copy");
        return NULL;
    }
    a->set = *setup->set;
    a->fast_digests = router_least_minor(a->set.router) >= COPY_FAST_MINOR;
    a->due = setup->due;
    a->woken = on_woken;
    a->copy = setup->copy;
    a->initiator = setup->initiator;
    a->attempt = setup->attempt;
    a->id = setup->id;
    a->rank = groups_rank(a->set.groups);
    a->heard_at = router_now(a->set.router);
    a->algorithm = copy_request_algorithm(setup->request, router_torus(a->set.router), &a->mode);
    copy_id_text(a->id, a->id_text);
    (void)snprintf(a->name, sizeof a->name, GROUP_COPY_PREFIX "%s.%u", a->id_text, a->attempt);
    if (copy_request_copy(&a->request, setup->request, e) != 0 || take_memory(a, e) != 0) {
        agent_free(a);
        return NULL;
    }
    agent_wake(a);
    return a;
}

static void on_opened(void *context, struct group *group)
{
    struct agent *a = context;

    (void)group;
    a->opened = true;
    agent_wake(a);
}

static void on_called(void *context, uint64_t call, const struct error *e)
{
    struct agent *a = context;

    (void)e; /* on_ended() reports a call that has failed */
    if (call == GATHERING_CALL)
        a->gathering.called = true;
    else
        moving_called(a, (unsigned)call);
    agent_wake(a);
}

static void on_ended(void *context, const struct error *e)
{
    struct agent *a = context;
    struct error why = *e;

    log_info("copy %s.%u: %s", a->id_text, a->attempt, e->text);
    /* Other members may have had the group open, but without this one they have put nothing in place. */
    if (why.code == ERROR_IN_DOUBT)
        why.code = ERROR_LINK;
    agent_end_early(a, &why);
}

/* Whether this node sends a tree; whether it receives one. */
static bool sends(const struct agent *a)
{
    for (uint32_t i = 0; i < a->plan.trees; i++)
        if (a->plan.tree[i].reader == a->rank)
            return true;
    return false;
}

static bool receives(const struct agent *a)
{
    for (uint32_t i = 0; i < a->plan.trees; i++) {
        const struct copy_tree *t = &a->plan.tree[i];
        if (t->writer == a->rank || (t->writer == COPY_EVERY_NODE && t->reader != a->rank))
            return true;
    }
    return false;
}

/* The disk that the agent waits for before its next call. */
static enum group_client_wait waits_for(void *context)
{
    const struct agent *a = context;

    if (!a->job_runs)
        return moving_waits(a);
    if (!sends(a) || !receives(a))
        return receives(a) ? GROUP_CLIENT_WRITES : GROUP_CLIENT_READS;
    switch (a->job_step) {
    case STEP_DIGEST:
    case STEP_CHECK:
        return GROUP_CLIENT_READS;
    case STEP_OPEN:
        return GROUP_CLIENT_READS;
    default:
        return GROUP_CLIENT_WRITES;
    }
}

static void open_group(struct agent *a)
{
    const struct group_client client = {a, on_opened, on_called, on_ended, NULL, waits_for, NULL};
    const struct group_options options = {.name = a->name,
                                          .shrink = a->request.shrink,
                                          .wait = a->request.wait,
                                          .trace = a->request.trace,
                                          .user = a->request.user};
    struct error e;

    a->asked_for_group = true;
    a->group = group_open(a->set.groups, &options, &client, &e);
    if (a->group == NULL)
        agent_end_early(a, &e);
}

/* The group is open: numbers its members, and makes the plan. Returns 0, or -1: the agent has failed. */
static int begin(struct agent *a)
{
    const uint32_t nodes = groups_torus(a->set.groups)->nodes;
    const bool *gone = group_left_out(a->group);
    struct error e;

    a->node = calloc(nodes, sizeof *a->node);
    a->member = calloc(nodes, sizeof *a->member);
    if (a->node == NULL || a->member == NULL) {
        agent_fail_for_memory(a);
        return -1;
    }
    for (uint32_t node = 0; node < nodes; node++)
        if (gone == NULL || !gone[node]) {
            a->member[node] = a->members;
            a->node[a->members++] = node;
        }
    if (copy_plan_make(&a->plan, &a->request, nodes, gone, &e) != 0) {
        a->is_final = true;
        agent_fail(a, &e);
        return -1;
    }
    log_info("copy %s.%u of node %u begins", a->id_text, a->attempt, a->initiator);
    return 0;
}

/* --- the steps --- */

static const char *const step_names[] = {
    [STEP_OPENING] = "the group is open",
    [STEP_OPEN] = "trees are open",
    [STEP_TELL_OPENED] = "all have opened theirs",
    [STEP_MOVE_MANIFESTS] = "manifests are here",
    [STEP_COMPARE] = "compared",
    [STEP_TELL_COMPARED] = "all have compared",
    [STEP_DIGEST] = "digests are made",
    [STEP_TELL_DIGESTED] = "all have made digests",
    [STEP_MOVE_DIGESTS] = "digests are here",
    [STEP_MISSING] = "it is known what is missing here",
    [STEP_TELL_MISSING] = "it is known what is missing everywhere",
    [STEP_MOVE_STREAMS] = "everything has arrived",
    [STEP_CHECK] = "sources are checked",
    [STEP_TELL_CHECKED] = "all have checked theirs",
    [STEP_FINISH] = "trees are in place",
    [STEP_TELL_FINISHED] = "all have put theirs in place",
};

static enum step_report_kind step_report_of(enum agent_step step)
{
    switch (step) {
    case STEP_TELL_COMPARED:
        return STEP_REPORT_COMPARED;
    case STEP_TELL_DIGESTED:
        return STEP_REPORT_DIGESTED;
    case STEP_TELL_MISSING:
        return STEP_REPORT_MISSING;
    case STEP_TELL_CHECKED:
        return STEP_REPORT_CHECKED;
    case STEP_TELL_FINISHED:
        return STEP_REPORT_FINISHED;
    default:
        return STEP_REPORT_OPENED;
    }
}

static bool is_telling(enum agent_step step)
{
    return step == STEP_TELL_OPENED || step == STEP_TELL_COMPARED || step == STEP_TELL_DIGESTED ||
           step == STEP_TELL_MISSING || step == STEP_TELL_CHECKED || step == STEP_TELL_FINISHED;
}

/* All members leave out the same steps. */
static bool is_left_out(const struct agent *a, enum agent_step step)
{
    switch (step) {
    case STEP_DIGEST:
    case STEP_TELL_DIGESTED:
    case STEP_MOVE_DIGESTS:
        return !a->plan.wants;
    case STEP_MOVE_STREAMS:
        return a->request.dry_run || a->request.verify;
    default:
        return false;
    }
}

static int tell(struct agent *a)
{
    const enum step_report_kind kind = step_report_of(a->step);

    if (a->gathering.state == GATHERING_IDLE)
        return step_report_gathering_begin(a, kind);
    while (a->gathering.called) {
        a->gathering.called = false;
        const int result = step_report_gathering_called(a, kind);
        if (result > 0 && a->step == STEP_TELL_MISSING)
            a->compared_at = router_now(a->set.router);
        if (result != 0)
            return result;
    }
    return 0;
}

/* Notes for the asked node the rates of links that the routes were found for: those of a named algorithm know none. */
static void note_links(struct agent *a)
{
    const struct damage *links = a->algorithm == NULL ? group_links(a->group) : NULL;

    if (a->initiator != agent_rank(a))
        return;
    link_rates_of(&a->links, links);
    if (a->request.kind == COPY_TO_ALL && a->request.nodes == NULL)
        link_rates_bound_broadcast(&a->links, links, a->request.node);
}

static int move(struct agent *a)
{
    const enum moved what = a->step == STEP_MOVE_MANIFESTS ? MOVED_MANIFESTS
                            : a->step == STEP_MOVE_DIGESTS ? MOVED_DIGESTS
                                                           : MOVED_STREAMS;

    if (!a->moving.active && moving_begin(a, what) != 0)
        return -1;
    const int result = moving_advance(a);
    if (result > 0 && what == MOVED_STREAMS) {
        a->moved = a->moving.bytes;
        a->carried = *group_carried(a->group);
        note_links(a);
    }
    if (result > 0)
        moving_end(a);
    return result;
}

static int work_on(struct agent *a)
{
    if (!a->job_runs && !a->job_done)
        start_job(a);
    if (!a->job_done)
        return 0;
    a->job_done = false;
    return 1;
}

/* Returns 1 if the agent's step is complete; 0; or -1: the agent has failed. */
static int advance_step(struct agent *a)
{
    if (a->step == STEP_OPENING)
        return !a->opened ? 0 : begin(a) == 0 ? 1 : -1;
    if (is_left_out(a, a->step))
        return 1;
    if (is_telling(a->step))
        return tell(a);
    return job_of(a->step) != NULL ? work_on(a) : move(a);
}

static void advance_ending(struct agent *a)
{
    if (works(a) || a->job_done)
        return;
    if (copy_trees_are_open(a))
        start_job(a);
    else
        a->job_done = true;
    if (a->job_done)
        agent_wake(a);
}

void agent_advance(struct agent *a)
{
    if (a->step == STEP_OPENING && !a->asked_for_group)
        open_group(a);
    while (a->step < STEP_OVER) {
        const int result = advance_step(a);
        if (result < 0)
            break;
        if (result == 0)
            return;
        if (!is_left_out(a, a->step))
            log_debug("copy %s.%u: %s", a->id_text, a->attempt, step_names[a->step]);
        a->step++;
        /* a member that has heard all others finishes its trees, even if some of these have ended meanwhile */
        a->is_late = a->step >= STEP_TELL_CHECKED && !a->request.dry_run && !a->request.verify;
    }
    if (a->step == STEP_ENDING)
        advance_ending(a);
}

void agent_leave(struct agent *a)
{
    struct group *group = a->group;

    log_info("copy %s.%u has ended", a->id_text, a->attempt);
    a->step = STEP_ENDING;
    a->job_done = false;
    a->group = NULL;
    group_close(group);
    agent_wake(a);
}

/* --- progress --- */

static enum copy_phase phase_of(enum agent_step step)
{
    if (step == STEP_OPENING)
        return COPY_CALLING;
    if (step <= STEP_MOVE_MANIFESTS)
        return COPY_READING;
    if (step <= STEP_TELL_MISSING)
        return COPY_COMPARING;
    return step == STEP_MOVE_STREAMS ? COPY_MOVING : COPY_PLACING;
}

void agent_progress(const struct agent *a, struct copy_progress *progress)
{
    *progress = (struct copy_progress){
        .phase = phase_of(a->step),
        .files = atomic_load(&a->progress.files),
        .bytes = a->step == STEP_MOVE_STREAMS ? a->moving.bytes : a->moved,
    };
    for (uint32_t i = 0; a->step >= STEP_MOVE_STREAMS && a->step <= STEP_OVER && i < a->plan.trees;
         i++)
        progress->bytes_of += a->plan.tree[i].missing.bytes;
    if (a->group == NULL || a->opened)
        return;
    char list[sizeof progress->waits_for - sizeof "nodes "];
    const uint32_t missing = group_missing(a->group, list, sizeof list);
    if (missing > 0)
        (void)snprintf(progress->waits_for, sizeof progress->waits_for, "%s %s",
                       text_plural(missing, "node", "nodes"), list);
}
