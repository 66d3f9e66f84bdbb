/* How a node handles its root's prepare: it makes an attempt, which it passes on to its children, or it objects. */
#include "daemon/torusd/exchange/phases/prepare_heard.h"

#include <stdio.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/exchange/abort/fail.h"
#include "daemon/torusd/exchange/abort/group_restart.h"
#include "daemon/torusd/exchange/abort/retry.h"
#include "daemon/torusd/exchange/abort/verdict.h"
#include "daemon/torusd/exchange/phases/entry.h"
#include "daemon/torusd/exchange/phases/fault_watch.h"
#include "daemon/torusd/exchange/phases/prepare.h"
#include "daemon/torusd/exchange/phases/prepare_check.h"
#include "daemon/torusd/exchange/phases/prepare_links.h"
#include "daemon/torusd/exchange/record/attempt_state.h"
#include "daemon/torusd/exchange/record/avoided.h"
#include "daemon/torusd/exchange/record/job.h"
#include "daemon/torusd/exchange/record/table.h"
#include "daemon/torusd/exchange/record/times.h"
#include "daemon/torusd/exchange/record/tracing.h"
#include "daemon/torusd/planning/schedule_store.h"

/* Frees a handle for a new attempt. Handles are used again after a while, and a restarted root does not know
 * the old ones. Returns 0, or -1 with *e if the attempt with this handle is still under way. */
static int free_handle(struct exchanges *exchanges, uint32_t handle, struct error *e)
{
    struct attempt *x = attempt_find(exchanges, handle);

    if (x == NULL)
        return 0;
    if (!state_of(x)->ended || x->local.closing > 0 || x->job != NULL)
        return error_set(e, ERROR_BUSY, "node %u is busy: exchange %s has the same handle",
                         router_rank(exchanges->set.router), x->id.text);
    attempt_forget(x);
    return 0;
}

/* Returns this node's job that the prepare is for; NULL if nobody has entered it here, or for an exchange. */
static struct job *job_of(struct exchanges *exchanges, const struct peer_prepare *prepare,
                          const struct prepare_ids *ids, const struct spec *spec)
{
    struct job *j;
    struct error e;

    if (!kind_of_spec(spec)->is_entered)
        return NULL;
    if (!prepare_is_restart(prepare))
        return entry_prepared(exchanges, spec, prepare->root);
    j = group_restart_find(exchanges, &ids->resumes, &ids->id, &e);
    (void)error_set(&e, ERROR_BUSY, "the group has been restarted");
    if (j != NULL && job_is_under_way(j))
        retry_withdrawn(j->attempt, &e);
    return j;
}

/* Makes the attempt. Takes *spec and the use of the schedule over, also on failure. Returns NULL with *e. */
static struct attempt *take_on(struct exchanges *exchanges, const struct peer_prepare *prepare,
                               const struct prepare_ids *ids, struct spec *spec,
                               struct schedule *schedule, struct error *e)
{
    const struct attempt_name name = {.id = ids->id, .handle = prepare->exchange};
    struct job *j = job_of(exchanges, prepare, ids, spec);
    struct attempt *x;

    x = attempt_new(exchanges, &name, prepare->root);
    if (x == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for an exchange");
        if (schedule != NULL)
            schedules_leave(exchanges->schedules, schedule);
        spec_free(spec);
        if (j != NULL)
            job_fail(j, e); /* the attempt fails on the other nodes, too */
        return NULL;
    }
    x->user = j != NULL ? j->user : prepare->user;
    x->spec = *spec;
    x->schedule = schedule;
    x->algorithm =
        spec_finds_routes(spec, torus_of(x), true) ? NULL : algorithm_find(spec->algorithm);
    x->mode = spec->mode;
    x->local.round_bytes = prepare->round_bytes;
    x->local.window = prepare->window;
    x->avoids_links = prepare->avoids_links;
    x->resumes = ids->resumes;
    x->tree.parent = 0; /* a placeholder until the tree is known: only the root has no parent */
    x->job = j;
    tracing_begin(x);
    return x;
}

/* Starts to use the schedule that the spec names, if any. */
static int join_schedule(struct exchanges *exchanges, const struct spec *spec, uint32_t user,
                         struct schedule **s, struct error *e)
{
    if (!spec_has_schedule(spec))
        return 0;
    *s = schedules_join(exchanges->schedules, spec->schedule, user, e);
    return *s != NULL ? 0 : -1;
}

/* Decides whether this node takes part. Returns 0 with *spec and a use of *schedule (NULL: the spec names
 * none), or -1 with *e and nothing to give back. */
static int accept_prepare(struct exchanges *exchanges, const struct peer_prepare *prepare,
                          const struct prepare_ids *ids, const struct damage *damage,
                          struct spec *spec, struct schedule **schedule, struct error *e)
{
    *schedule = NULL;
    if (spec_unpack(spec, prepare->spec, e) != 0)
        return -1;
    if (prepare_check_here(exchanges, prepare, ids, spec, damage, e) == 0 &&
        free_handle(exchanges, prepare->exchange, e) == 0 &&
        join_schedule(exchanges, spec, prepare->user, schedule, e) == 0)
        return 0;
    spec_free(spec);
    return -1;
}

/* Limits the attempt's time to the root's timeout, or to that of the client that has entered here if it is
 * shorter. */
static void limit_time(struct attempt *x)
{
    uint64_t timeout_ns = x->spec.timeout_ns;
    uint64_t deadline = router_now(router_of(x)) + timeout_ns + PEER_PATIENCE;

    if (x->job != NULL) {
        x->timeout_ns = x->job->timeout_ns;
        x->deadline = x->job->deadline;
    }
    if (deadline < x->deadline) {
        x->timeout_ns = timeout_ns;
        x->deadline = deadline;
    }
}

/* Starts the attempt at this node. Takes *damage over. */
static void begin_attempt(struct attempt *x, unsigned port, struct damage *damage)
{
    struct schedule *schedule = x->schedule;
    struct job *j = x->job;
    struct error why, given_up = {.code = ERROR_NONE};
    int found = avoided_set(x, damage, &why);

    x->tree.parent = (int)port; /* needed even without memory for the rest */
    if (j != NULL)
        given_up = j->failure; /* this node had already given up an open group */
    limit_time(x);
    attempt_enter(x, x->local.round_bytes == 0 ? EXCHANGE_OPENING : EXCHANGE_PREPARING);
    if (j != NULL)
        job_set_attempt(j, x);
    /* Pass the prepare on before checking, so that all nodes check at the same time. */
    prepare_begin(x);
    if (schedule != NULL)
        schedule_fetch(x->exchanges->schedules, schedule, port);
    if (given_up.code != ERROR_NONE) {
        attempt_fail(x, &given_up);
        return;
    }
    if (attempt_is_awaited(x) && entry_differs(x, &j->spec, &x->spec))
        return;
    if (found != 0 || fault_watch_own_link_down(x, &why))
        prepare_object(x, &why);
    else
        prepare_advance(x);
}

int prepare_heard(struct exchanges *exchanges, unsigned port, const struct peer_prepare *prepare,
                  struct error *e)
{
    struct attempt *x = attempt_find(exchanges, prepare->exchange);
    struct prepare_ids ids;
    struct schedule *schedule;
    struct damage damage;
    struct error why;
    struct spec spec;

    if (prepare_links_unpack(router_torus(exchanges->set.router), prepare, &damage, e) != 0)
        return -1;
    if (prepare_check(exchanges, port, prepare, &damage, &ids, e) != 0) {
        damage_free(&damage);
        return -1;
    }
    /* Its verdict was faster than its prepare. */
    if (x != NULL && exchange_id_equal(&x->id, &ids.id)) {
        damage_free(&damage);
        return 0;
    }
    x = accept_prepare(exchanges, prepare, &ids, &damage, &spec, &schedule, &why) == 0
            ? take_on(exchanges, prepare, &ids, &spec, schedule, &why)
            : NULL;
    if (x != NULL) {
        begin_attempt(x, port, &damage);
        return 0;
    }
    damage_free(&damage);
    if (why.code != ERROR_BUSY && !(prepare_is_restart(prepare) && why.code == ERROR_REFUSED))
        prepare_wrap_refusal(exchanges, port, &why);
    (void)error_blame_node_by_default(&why, router_rank(exchanges->set.router));
    objection_send(exchanges, (int)port, prepare->exchange, &ids.id, prepare->root, &why, false);
    return 0;
}
