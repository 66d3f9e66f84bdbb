#include "daemon/exchange/exchange.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/base/log.h"
#include "daemon/base/shares.h"
#include "daemon/exchange/abort/fail.h"
#include "daemon/exchange/abort/verdict.h"
#include "daemon/exchange/advance.h"
#include "daemon/exchange/commit/decisions.h"
#include "daemon/exchange/commit/in_doubt.h"
#include "daemon/exchange/commit/outcome_messages.h"
#include "daemon/exchange/phases/client.h"
#include "daemon/exchange/phases/entry.h"
#include "daemon/exchange/phases/failure_messages.h"
#include "daemon/exchange/phases/fault_watch.h"
#include "daemon/exchange/phases/job_watch.h"
#include "daemon/exchange/phases/rounds.h"
#include "daemon/exchange/record/absent.h"
#include "daemon/exchange/record/attempt_state.h"
#include "daemon/exchange/record/job.h"
#include "daemon/exchange/record/kept_blocks.h"
#include "daemon/exchange/record/link_costs.h"
#include "daemon/exchange/record/local_resources.h"
#include "daemon/exchange/record/predicates.h"
#include "daemon/exchange/record/table.h"
#include "daemon/exchange/record/tree_messages.h"
#include "daemon/exchange/start_queue.h"
#include "daemon/planning/planner.h"
#include "daemon/planning/schedule_store.h"
#include "proto/text.h"

#define ENDED_REMEMBERED 64u /* needed for late frames, and for status */

/* --- events of sources and sinks --- */

static void on_moved(void *context)
{
    struct attempt *x = context;

    if (x->own.engine != NULL)
        engine_wake(x->own.engine);
    attempt_advance(x);
}

static void on_failed(void *context, const struct error *e)
{
    struct error here = *e;
    struct attempt *x = context;

    if (!state_of(x)->prepares)
        (void)error_wrap_node(&here, rank_of(x));
    else if (!attempt_is_root(x) && e->code != ERROR_BUSY)
        (void)error_wrap(&here, "node %u refuses", rank_of(x));
    (void)error_blame_node_by_default(&here, rank_of(x));
    attempt_fail(x, &here);
}

static void on_closed(void *context)
{
    struct attempt *x = context;

    if (x->all != NULL)
        attempt_closed_one(x);
    else if (--x->own.closing == 0)
        attempt_forget(x); /* exchanges_free() has been called meanwhile */
}

static void on_planned(void *context)
{
    struct exchanges *all = context;
    struct attempt *x, *next;

    start_queue_advance(all);
    DL_FOREACH_SAFE (all->active, x, next) {
        if (kind_of(x)->has_session && x->own.engine != NULL)
            engine_wake(x->own.engine);
        attempt_advance(x);
    }
    if (all->set.planned != NULL)
        all->set.planned(all->set.planned_context);
}

static void on_schedule(void *context)
{
    struct exchanges *all = context;
    struct attempt *x, *next;

    start_queue_advance(all);
    DL_FOREACH_SAFE (all->active, x, next)
        if (x->schedule != NULL)
            attempt_advance(x);
}

static void on_forgotten(void *context, const struct algorithm *a)
{
    planner_forget(((struct exchanges *)context)->planner, a);
}

struct exchanges *exchanges_new(const struct exchanges_setup *setup, struct error *e)
{
    struct exchanges *all = calloc(1, sizeof *all);

    (void)error_set(e, ERROR_MEMORY, "out of memory");
    if (all == NULL)
        return NULL;
    all->set = *setup;
    all->block_events = (struct block_events){NULL, on_moved, on_failed, on_closed};
    shares_set_capacity(setup->shares, SHARE_TRANSIT, setup->memory_budget);
    shares_set_capacity(setup->shares, SHARE_GROUPS, setup->memory_budget);
    shares_set_least(setup->shares, SHARE_GROUPS, setup->sessions.memory);
    start_queue_set_capacities(setup->shares);
    all->ask_at = ROUTER_NEVER;
    all->least_pause = INFINITY;
    all->planner = planner_new(router_torus(setup->router), router_rank(setup->router),
                               &setup->workers, on_planned, all);
    all->schedules = schedules_new(&(struct schedules_setup){
        setup->router, setup->workers, setup->shares, on_schedule, on_forgotten, all});
    all->trees = tree_messages_trees_new();
    if (absent_init(all) != 0 || all->planner == NULL || all->schedules == NULL ||
        all->trees == NULL) {
        free(all->absent);
        tree_messages_trees_free(all->trees);
        schedules_free(all->schedules);
        if (all->planner != NULL)
            planner_free(all->planner);
        free(all);
        return NULL;
    }
    router_random(setup->router, &all->counter, sizeof all->counter);
    all->counter &= 0xffff;
    if (decisions_load(all, e) != 0 || in_doubt_load(all, e) != 0) {
        exchanges_free(all); /* without its records, this node would answer questions wrongly */
        return NULL;
    }
    link_costs_load(all);
    return all;
}

void exchanges_free(struct exchanges *all)
{
    struct attempt *x, *next;
    struct job *j, *next_job;

    DL_FOREACH_SAFE (all->jobs, j, next_job)
        job_free(j);
    DL_FOREACH_SAFE (all->active, x, next) {
        /* Keep an output that may be committed on other nodes; the next start resolves it. */
        local_resources_release_engine(x);
        local_resources_close(x, state_of(x)->may_be_committed);
        attempt_let_go(x);
    }
    DL_FOREACH_SAFE (all->ended, x, next)
        attempt_let_go(x);
    schedules_free(all->schedules);
    planner_free(all->planner);
    in_doubt_free(all);
    kept_blocks_free(all);
    decisions_free(all);
    tree_messages_trees_free(all->trees);
    free(all->absent);
    free(all);
}

struct outgoing *exchanges_next(struct exchanges *all, unsigned port)
{
    struct attempt *x;

    /* Round robin: start behind the attempt that sent last through this port. */
    x = attempt_find(all, all->next_handle[port]);
    if (x != NULL && state_of(x)->ended)
        x = NULL;
    for (unsigned i = all->active_count; i > 0 && all->active != NULL; i--) {
        if (x == NULL)
            x = all->active;
        struct attempt *next = x->next;
        if (state_of(x)->moves) {
            struct outgoing *frame = engine_next(x->own.engine, port);
            attempt_advance(x);
            if (frame != NULL) {
                all->next_handle[port] = next != NULL ? next->handle : UINT32_MAX;
                return frame;
            }
        }
        x = next;
    }
    return NULL;
}

static void note_change(struct exchanges *all)
{
    all->changed_at = router_now(all->set.router);
    absent_note(all);
    decisions_remind_soon(all);
}

void exchanges_topology(struct exchanges *all)
{
    const struct topology *topology = router_topology(all->set.router);
    uint32_t up = topology->entry[router_rank(all->set.router)].up;
    struct attempt *x, *next;
    struct job *j, *next_job;

    if (topology->changes != all->changes)
        note_change(all);
    all->changes = topology->changes;
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        if ((all->links_up & ~up & 1u << port) != 0)
            schedules_lost(all->schedules, port);
    DL_FOREACH_SAFE (all->active, x, next)
        fault_watch_topology(x);
    DL_FOREACH_SAFE (all->jobs, j, next_job)
        job_watch_topology(j);
    DL_FOREACH_SAFE (all->jobs, j, next_job)
        entry_lead(j);
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        if ((up & ~all->links_up & 1u << port) != 0) {
            objections_repeat(all, port);
            verdicts_repeat(all, port);
        }
    all->links_up = up;
    kept_blocks_tick(all, router_now(all->set.router));
    link_costs_topology(all);
}

uint64_t exchanges_deadline(const struct exchanges *all)
{
    uint64_t at = kept_blocks_deadline(all);

    at = all->ask_at < at ? all->ask_at : at;
    for (const struct attempt *x = all->active; x != NULL; x = x->next) {
        uint64_t one = fault_watch_deadline(x);
        uint64_t other = x->schedule != NULL ? schedule_deadline(x->schedule) : ROUTER_NEVER;
        at = one < at ? one : at;
        at = other < at ? other : at;
    }
    for (const struct job *j = all->jobs; j != NULL; j = j->next) {
        uint64_t one = job_watch_deadline(j);
        at = one < at ? one : at;
    }
    return all->tellable > 0 || all->start_due ? 0 : at;
}

/* Tells the clients of ended jobs, and frees those jobs. */
static void tell_ended(struct exchanges *all)
{
    struct job *j, *next;

    DL_FOREACH_SAFE (all->jobs, j, next) {
        const struct error *e = j->attempt != NULL ? &j->attempt->failure : &j->failure;
        if (job_is_tellable(j))
            client_tell(j, e->code != ERROR_NONE ? e : NULL);
        if (job_has_ended(j) && j->client_state != CLIENT_WAITING && job_closing(j) == 0)
            job_free(j);
    }
}

static void tick_ended(struct exchanges *all)
{
    struct attempt *x, *next;

    tell_ended(all);
    DL_FOREACH_SAFE (all->ended, x, next) {
        if (x->job != NULL)
            continue;
        attempt_leave_schedule(x);
        if (all->ended_count > ENDED_REMEMBERED && x->own.closing == 0)
            attempt_forget(x);
    }
}

void exchanges_tick(struct exchanges *all)
{
    uint64_t now = router_now(all->set.router);
    struct attempt *x, *next;
    struct job *j, *next_job;

    DL_FOREACH_SAFE (all->active, x, next) {
        if (x->schedule != NULL && now >= schedule_deadline(x->schedule)) {
            schedule_tick(all->schedules, x->schedule, now);
            attempt_advance(x);
            continue; /* the attempt has failed */
        }
        fault_watch_tick(x, now);
        if (rounds_are_due(x))
            rounds_resume(x);
    }
    DL_FOREACH_SAFE (all->jobs, j, next_job)
        job_watch_tick(j, now);
    if (now >= all->ask_at) {
        all->ask_at = ROUTER_NEVER;
        outcome_ask(all);
        if (all->doubts != NULL)
            ask_by(all, now + outcome_pause(all));
        outcome_remind(all, now);
    }
    kept_blocks_tick(all, now);
    start_queue_advance(all);
    tick_ended(all);
}

void exchange_cancel(struct job *j)
{
    const struct error e = {.code = ERROR_CANCELLED, .text = "cancelled by its client"};

    job_fail(j, &e);
}

void exchange_release(struct job *j)
{
    j->all->tellable -= job_is_tellable(j);
    j->client_state = CLIENT_NONE;
    j->all->start_due |= job_has_ended(j); /* the next tick frees the job */
}

void exchange_give_up(struct job *j, const struct error *why)
{
    exchange_release(j);
    job_fail(j, why);
}

void exchange_abandon(struct job *j)
{
    exchange_release(j);
    exchange_cancel(j);
}
