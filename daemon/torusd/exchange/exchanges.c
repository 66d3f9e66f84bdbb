#include "daemon/torusd/exchange/exchange.h"

#include <stdlib.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/abort.h"
#include "daemon/torusd/exchange/commit.h"
#include "daemon/torusd/exchange/decisions.h"
#include "daemon/torusd/exchange/entry.h"
#include "daemon/torusd/exchange/fault_watch.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/kept_blocks.h"
#include "daemon/torusd/exchange/link_costs.h"
#include "daemon/torusd/exchange/local_resources.h"
#include "daemon/torusd/exchange/membership.h"
#include "daemon/torusd/exchange/plan_rates.h"
#include "daemon/torusd/exchange/rounds.h"
#include "daemon/torusd/exchange/start.h"
#include "daemon/torusd/exchange/tracing.h"
#include "daemon/torusd/exchange/tree_messages.h"
#include "daemon/torusd/planning/schedule_store.h"
#include "proto/text.h"

#define ENDED_REMEMBERED 64u /* needed for late frames, and for status */

/* --- events of sources and sinks --- */

static void on_moved(void *context)
{
    struct attempt *x = context;

    if (x->local.engine != NULL)
        engine_wake(x->local.engine);
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

    if (x->exchanges != NULL)
        attempt_closed_one(x);
    else if (--x->local.closing == 0)
        attempt_forget(x); /* exchanges_free() has been called meanwhile */
}

static void on_planned(void *context)
{
    struct exchanges *exchanges = context;
    struct attempt *x, *next;

    start_queue_advance(exchanges);
    DL_FOREACH_SAFE (exchanges->active, x, next) {
        if (kind_of(x)->has_session && x->local.engine != NULL)
            engine_wake(x->local.engine);
        attempt_advance(x);
    }
    if (exchanges->set.planned != NULL)
        exchanges->set.planned(exchanges->set.planned_context);
}

static void on_schedule(void *context)
{
    struct exchanges *exchanges = context;
    struct attempt *x, *next;

    start_queue_advance(exchanges);
    DL_FOREACH_SAFE (exchanges->active, x, next)
        if (x->schedule != NULL)
            attempt_advance(x);
}

static void on_forgotten(void *context, const struct algorithm *a)
{
    planner_forget(((struct exchanges *)context)->planner, a);
}

static void set_memory(struct exchanges *exchanges, uint64_t budget)
{
    exchanges->set.memory_budget = budget;
    shares_set_capacity(exchanges->set.shares, SHARE_TRANSIT, budget);
    shares_set_capacity(exchanges->set.shares, SHARE_GROUPS, budget);
}

void exchanges_raise_memory(struct exchanges *exchanges, uint64_t budget)
{
    if (budget > exchanges->set.memory_budget)
        set_memory(exchanges, budget);
}

struct exchanges *exchanges_new(const struct exchanges_setup *setup, struct error *e)
{
    struct exchanges *exchanges = calloc(1, sizeof *exchanges);

    (void)error_set(e, ERROR_MEMORY, "out of memory for the exchanges of this node");
    if (exchanges == NULL)
        return NULL;
    exchanges->set = *setup;
    exchanges->block_events = (struct block_events){NULL, on_moved, on_failed, on_closed};
    set_memory(exchanges, setup->memory_budget);
    shares_set_least(setup->shares, SHARE_GROUPS, setup->sessions.memory);
    start_queue_set_capacities(setup->shares);
    exchanges_rates_changed(exchanges, setup->link_mbit);
    exchanges->ask_at = exchanges->rates.look_at = ROUTER_NEVER;
    exchanges->rates.allowance.left = UINT64_MAX; /* as much as may gather */
    exchanges->planner = planner_new(router_torus(setup->router), router_rank(setup->router),
                                     &setup->workers, on_planned, exchanges);
    exchanges->schedules = schedules_new(&(struct schedules_setup){
        setup->router, setup->workers, setup->shares, on_schedule, on_forgotten, exchanges});
    exchanges->trees = tree_messages_trees_new();
    if (absent_init(exchanges) != 0 || exchanges->planner == NULL || exchanges->schedules == NULL ||
        exchanges->trees == NULL) {
        free(exchanges->absent);
        tree_messages_trees_free(exchanges->trees);
        schedules_free(exchanges->schedules);
        if (exchanges->planner != NULL)
            planner_free(exchanges->planner);
        free(exchanges);
        return NULL;
    }
    router_random(setup->router, &exchanges->counter, sizeof exchanges->counter);
    exchanges->counter &= 0xffff;
    if (decisions_load(exchanges, e) != 0) {
        /* Without its records, this node would answer questions wrongly. */
        exchanges_free(exchanges);
        return NULL;
    }
    link_costs_load(exchanges);
    return exchanges;
}

void exchanges_free(struct exchanges *exchanges)
{
    struct attempt *x, *next;
    struct job *j, *next_job;

    DL_FOREACH_SAFE (exchanges->jobs, j, next_job)
        job_free(j);
    DL_FOREACH_SAFE (exchanges->active, x, next) {
        /* Keep an output that may be committed on other nodes; the next start resolves it. */
        local_resources_release_engine(x);
        local_resources_close(x, state_of(x)->may_be_committed);
        attempt_free_when_closed(x);
    }
    DL_FOREACH_SAFE (exchanges->ended, x, next)
        attempt_free_when_closed(x);
    schedules_free(exchanges->schedules);
    planner_free(exchanges->planner);
    kept_blocks_free(exchanges);
    decisions_free(exchanges);
    tree_messages_trees_free(exchanges->trees);
    plan_rates_free(exchanges);
    free(exchanges->absent);
    tracing_free(exchanges);
    free(exchanges);
}

struct outgoing *exchanges_next(struct exchanges *exchanges, unsigned port)
{
    struct attempt *x;

    /* Round robin: start behind the attempt that sent last through this port. */
    x = attempt_find(exchanges, exchanges->next_handle[port]);
    if (x != NULL && state_of(x)->ended)
        x = NULL;
    for (unsigned i = exchanges->active_count; i > 0 && exchanges->active != NULL; i--) {
        if (x == NULL)
            x = exchanges->active;
        struct attempt *next = x->next;
        if (state_of(x)->moves) {
            struct outgoing *frame = engine_next(x->local.engine, port);
            attempt_advance(x);
            if (frame != NULL) {
                exchanges->next_handle[port] = next != NULL ? next->handle : UINT32_MAX;
                return frame;
            }
        }
        x = next;
    }
    return NULL;
}

static void note_change(struct exchanges *exchanges)
{
    exchanges->changed_at = router_now(exchanges->set.router);
    absent_note(exchanges);
    decisions_remind_soon(exchanges);
}

void exchanges_topology(struct exchanges *exchanges)
{
    const struct topology *topology = router_topology(exchanges->set.router);
    uint32_t up = topology->entry[router_rank(exchanges->set.router)].up;
    struct attempt *x, *next;
    struct job *j, *next_job;

    if (topology->changes != exchanges->changes)
        note_change(exchanges);
    exchanges->changes = topology->changes;
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        if ((exchanges->links_up & ~up & 1u << port) != 0)
            schedules_link_lost(exchanges->schedules, port);
    DL_FOREACH_SAFE (exchanges->active, x, next)
        fault_watch_topology(x);
    DL_FOREACH_SAFE (exchanges->jobs, j, next_job)
        job_watch_topology(j);
    DL_FOREACH_SAFE (exchanges->jobs, j, next_job)
        entry_update_root(j);
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        if ((up & ~exchanges->links_up & 1u << port) != 0) {
            nacks_repeat(exchanges, port);
            aborts_repeat(exchanges, port);
        }
    tracing_note_links(exchanges, exchanges->links_up, up);
    exchanges->links_up = up;
    kept_blocks_tick(exchanges, router_now(exchanges->set.router));
    link_costs_topology(exchanges);
    plan_rates_heard(exchanges);
}

void exchanges_rates_heard(struct exchanges *exchanges)
{
    plan_rates_heard(exchanges);
}

uint64_t exchanges_deadline(const struct exchanges *exchanges)
{
    uint64_t at = kept_blocks_deadline(exchanges), sample = tracing_deadline(exchanges);
    const uint64_t rates = plan_rates_deadline(exchanges);

    at = sample < at ? sample : at;
    at = rates < at ? rates : at;
    at = exchanges->ask_at < at ? exchanges->ask_at : at;
    for (const struct attempt *x = exchanges->active; x != NULL; x = x->next) {
        uint64_t one = fault_watch_deadline(x);
        uint64_t other = x->schedule != NULL ? schedule_deadline(x->schedule) : ROUTER_NEVER;
        at = one < at ? one : at;
        at = other < at ? other : at;
    }
    for (const struct job *j = exchanges->jobs; j != NULL; j = j->next) {
        uint64_t one = job_watch_deadline(j);
        at = one < at ? one : at;
    }
    return exchanges->tellable > 0 || exchanges->start_due ? 0 : at;
}

/* Tells the clients of ended jobs, and frees those jobs. */
static void tell_ended(struct exchanges *exchanges)
{
    struct job *j, *next;

    DL_FOREACH_SAFE (exchanges->jobs, j, next) {
        const struct error *e = j->attempt != NULL ? &j->attempt->failure : &j->failure;
        if (job_is_tellable(j))
            client_tell(j, e->code != ERROR_NONE ? e : NULL);
        if (job_has_ended(j) && j->client_state != CLIENT_WAITING && job_closing(j) == 0)
            job_free(j);
    }
}

static void tick_ended(struct exchanges *exchanges)
{
    struct attempt *x, *next;

    tell_ended(exchanges);
    DL_FOREACH_SAFE (exchanges->ended, x, next) {
        if (x->job != NULL)
            continue;
        attempt_leave_schedule(x);
        if (exchanges->ended_count > ENDED_REMEMBERED && x->local.closing == 0)
            attempt_forget(x);
    }
}

void exchanges_tick(struct exchanges *exchanges)
{
    uint64_t now = router_now(exchanges->set.router);
    struct attempt *x, *next;
    struct job *j, *next_job;

    tracing_tick(exchanges, now);
    plan_rates_tick(exchanges, now);
    DL_FOREACH_SAFE (exchanges->active, x, next) {
        if (x->schedule != NULL && now >= schedule_deadline(x->schedule)) {
            schedule_tick(exchanges->schedules, x->schedule, now);
            attempt_advance(x);
            continue; /* the attempt has failed */
        }
        fault_watch_tick(x, now);
        if (rounds_are_due(x))
            rounds_resume(x);
    }
    DL_FOREACH_SAFE (exchanges->jobs, j, next_job)
        job_watch_tick(j, now);
    if (now >= exchanges->ask_at) {
        exchanges->ask_at = ROUTER_NEVER;
        outcome_ask(exchanges);
        if (exchanges->doubts != NULL)
            ask_by(exchanges, now + outcome_pause(exchanges));
        outcome_remind(exchanges, now);
    }
    kept_blocks_tick(exchanges, now);
    start_queue_advance(exchanges);
    tick_ended(exchanges);
}

void exchange_cancel(struct job *j)
{
    const struct error e = {.code = ERROR_CANCELLED, .text = ERROR_TEXT_CANCELLED};

    job_fail(j, &e);
}

void exchange_release(struct job *j)
{
    j->exchanges->tellable -= job_is_tellable(j);
    j->client_state = CLIENT_NONE;
    j->exchanges->start_due |= job_has_ended(j); /* the next tick frees the job */
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
