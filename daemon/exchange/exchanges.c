#include "daemon/exchange/exchange.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/choose.h"
#include "daemon/exchange/internal.h"
#include "daemon/exchange/sentence.h"
#include "proto/text.h"

#define ENDED_REMEMBERED 64u /* for stale frames and for status */

/* --- what sources and sinks tell --- */

static void on_moved(void *context)
{
    struct exchange *x = context;

    if (x->own.engine != NULL)
        engine_wake(x->own.engine);
    exchange_advance(x);
}

static void on_failed(void *context, const struct error *e)
{
    struct error here = *e;
    struct exchange *x = context;

    if (x->state != EXCHANGE_OPENING && x->state != EXCHANGE_PREPARING)
        (void)error_wrap(&here, "node %u", rank_of(x));
    else if (!exchange_is_root(x) && e->code != ERROR_BUSY)
        (void)error_wrap(&here, "node %u refuses", rank_of(x));
    exchange_fail(x, &here);
}

static void on_closed(void *context)
{
    struct exchange *x = context;

    if (x->all != NULL)
        state_closed_one(x);
    else if (--x->own.closing == 0)
        exchange_forget(x); /* the exchanges have gone before it */
}

static void on_planned(void *context)
{
    struct exchanges *all = context;
    struct exchange *x, *next;

    turns_advance(all);
    DL_FOREACH_SAFE (all->active, x, next) {
        if (x->spec.operation == OPERATION_GROUP && x->own.engine != NULL)
            engine_wake(x->own.engine);
        exchange_advance(x);
    }
    if (all->set.planned != NULL)
        all->set.planned(all->set.planned_context);
}

static void on_schedule(void *context)
{
    struct exchanges *all = context;
    struct exchange *x, *next;

    turns_advance(all);
    DL_FOREACH_SAFE (all->active, x, next)
        if (x->schedule != NULL)
            exchange_advance(x);
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
    turns_set_capacities(setup->shares);
    all->ask_at = ROUTER_NEVER;
    all->least_pause = INFINITY;
    all->planner = planner_new(router_torus(setup->router), router_rank(setup->router),
                               &setup->workers, on_planned, all);
    all->schedules = schedules_new(&(struct schedules_setup){
        setup->router, setup->workers, setup->shares, on_schedule, on_forgotten, all});
    all->trees = wave_trees_new();
    if (absent_init(all) != 0 || all->planner == NULL || all->schedules == NULL ||
        all->trees == NULL) {
        free(all->absent);
        wave_trees_free(all->trees);
        schedules_free(all->schedules);
        if (all->planner != NULL)
            planner_free(all->planner);
        free(all);
        return NULL;
    }
    router_random(setup->router, &all->counter, sizeof all->counter);
    all->counter &= 0xffff;
    if (decisions_load(all, e) != 0 || doubts_load(all, e) != 0) {
        exchanges_free(all); /* what is not remembered would be answered wrongly */
        return NULL;
    }
    calibration_load(all);
    return all;
}

void exchanges_free(struct exchanges *all)
{
    struct exchange *x, *next;

    DL_FOREACH_SAFE (all->active, x, next) {
        /* An output that may have been committed elsewhere stays for the next start. */
        bool keep = x->state == EXCHANGE_DONE || x->state == EXCHANGE_DECIDING ||
                    x->state == EXCHANGE_COMMITTING;
        opening_release_engine(x);
        opening_close(x, keep);
        exchange_let_go(x);
    }
    DL_FOREACH_SAFE (all->ended, x, next)
        exchange_let_go(x);
    schedules_free(all->schedules);
    planner_free(all->planner);
    doubts_free(all);
    resume_free(all);
    decisions_free(all);
    wave_trees_free(all->trees);
    free(all->absent);
    free(all);
}

struct outgoing *exchanges_next(struct exchanges *all, unsigned port)
{
    struct exchange *x;

    /* Round robin: the one after the last that sent here is asked first. */
    x = exchange_find(all, all->next_handle[port]);
    if (x != NULL && exchange_has_ended(x->state))
        x = NULL;
    for (unsigned i = all->active_count; i > 0 && all->active != NULL; i--) {
        if (x == NULL)
            x = all->active;
        struct exchange *next = x->next;
        if (x->state == EXCHANGE_RUNNING) {
            struct outgoing *frame = engine_next(x->own.engine, port);
            exchange_advance(x);
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
    struct exchange *x, *next;

    if (topology->changes != all->changes)
        note_change(all);
    all->changes = topology->changes;
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        if ((all->links_up & ~up & 1u << port) != 0)
            schedules_lost(all->schedules, port);
    DL_FOREACH_SAFE (all->active, x, next)
        failure_topology(x);
    DL_FOREACH_SAFE (all->active, x, next)
        barrier_lead(x);
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        if ((up & ~all->links_up & 1u << port) != 0) {
            objections_repeat(all, port);
            verdicts_repeat(all, port);
        }
    all->links_up = up;
    resume_tick(all, router_now(all->set.router));
    calibration_topology(all);
}

uint64_t exchanges_deadline(const struct exchanges *all)
{
    uint64_t at = resume_deadline(all);

    at = all->ask_at < at ? all->ask_at : at;
    for (const struct exchange *x = all->active; x != NULL; x = x->next) {
        uint64_t one = failure_deadline(x);
        uint64_t other = x->schedule != NULL ? schedule_deadline(x->schedule) : ROUTER_NEVER;
        at = one < at ? one : at;
        at = other < at ? other : at;
    }
    return all->tellable > 0 || all->turns_due ? 0 : at;
}

static bool may_be_forgotten(const struct exchange *x)
{
    return x->client_state != CLIENT_WAITING && x->own.closing == 0;
}

static void tick_ended(struct exchanges *all)
{
    struct exchange *x, *next;

    DL_FOREACH_SAFE (all->ended, x, next) {
        if (x->client_state == CLIENT_WAITING && x->own.closing == 0)
            exchange_tell(x, x->failure.code != ERROR_NONE ? &x->failure : NULL);
        if (x->client_state != CLIENT_WAITING)
            exchange_leave_schedule(x);
        if (all->ended_count > ENDED_REMEMBERED && may_be_forgotten(x))
            exchange_forget(x);
    }
}

void exchanges_tick(struct exchanges *all)
{
    uint64_t now = router_now(all->set.router);
    struct exchange *x, *next;

    DL_FOREACH_SAFE (all->active, x, next) {
        if (x->schedule != NULL && now >= schedule_deadline(x->schedule)) {
            schedule_tick(all->schedules, x->schedule, now);
            exchange_advance(x);
            continue; /* it has failed */
        }
        failure_tick(x, now);
        if (x->state == EXCHANGE_PAUSED && exchange_is_root(x))
            rounds_resume(x);
    }
    if (now >= all->ask_at) {
        all->ask_at = ROUTER_NEVER;
        doubts_ask(all);
        if (all->doubts != NULL)
            ask_by(all, now + settle_pause(all));
        decisions_remind(all, now);
    }
    resume_tick(all, now);
    turns_advance(all);
    tick_ended(all);
}

void exchange_cancel(struct exchange *x)
{
    const struct error e = {ERROR_CANCELLED, "cancelled by its client"};

    exchange_fail(x, &e);
}

void exchange_release(struct exchange *x)
{
    if (exchange_has_ended(x->state) && x->client_state == CLIENT_WAITING && x->own.closing == 0)
        x->all->tellable--;
    x->client_state = CLIENT_NONE;
}

void exchange_give_up(struct exchange *x, const struct error *why)
{
    exchange_release(x);
    exchange_fail(x, why);
}

void exchange_abandon(struct exchange *x)
{
    exchange_release(x);
    exchange_cancel(x);
}

bool exchange_is_undecided(const struct exchange *x)
{
    return exchange_is_root(x) && !spec_is_entered(&x->spec) && x->state != EXCHANGE_DECIDING &&
           x->state != EXCHANGE_COMMITTING && !exchange_has_ended(x->state);
}

const char *exchange_id(const struct exchange *x)
{
    return x->id;
}

void exchange_progress(const struct exchange *x, struct exchange_progress *progress)
{
    const struct rounds *r = &x->rounds;
    bool sized = spec_has_folders(&x->spec);
    uint64_t bytes = sized ? 0 : around_takes(x, rank_of(x)) * x->spec.block_bytes;
    /* What a node has counted is forgotten when it has finished a repetition. */
    uint32_t finished = x->turn.repeated + r->repetition +
                        (x->state == EXCHANGE_PAUSED ||
                         (x->state == EXCHANGE_RUNNING && !exchange_last_repetition(x) &&
                          (x->owed & OWN_PART) == 0));

    *progress = (struct exchange_progress){
        .state = x->state,
        .repetition = x->turn.repeated + r->repetition,
        .repeat = x->turn.repeated + x->spec.repeat,
        .round = r->round - exchange_first_round(x),
        .rounds = r->count,
        .done_bytes =
            x->own.engine != NULL ? x->own.engine->counts.bytes_delivered : x->own.delivered_bytes,
    };
    if (x->own.engine != NULL && x->own.resumed != NULL)
        progress->done_bytes += x->own.resumed->bytes;
    if (__builtin_mul_overflow(bytes, progress->repeat, &progress->total_bytes))
        progress->total_bytes = 0; /* too much to be told */
    else
        progress->done_bytes += bytes * finished;
    struct sentence awaited = {.used = 0};
    waiting_describe(x, &awaited);
    (void)snprintf(progress->waits_for, sizeof progress->waits_for, "%s", awaited.text);
}

static void info(const struct exchange *x, struct exchange_info *out)
{
    *out = (struct exchange_info){
        .state = x->state,
        .root = x->root,
        .age_ns = router_now(x->all->set.router) - x->began,
    };
    (void)snprintf(out->id, sizeof out->id, "%s", x->id);
    (void)snprintf(out->algorithm, sizeof out->algorithm, "%s",
                   x->algorithm != NULL   ? x->algorithm->name
                   : around_has_routes(x) ? DETOUR_NAME
                                          : x->spec.algorithm);
    (void)snprintf(out->reason, sizeof out->reason, "%s", x->failure.text);
}

/* An attempt that was taken back is not what anybody asked for; groups are listed as such. */
static bool is_listed(const struct exchange *x)
{
    return (x->state != EXCHANGE_FAILED || x->failure.code != ERROR_BUSY) &&
           x->spec.operation != OPERATION_GROUP;
}

size_t exchanges_list(const struct exchanges *all, struct exchange_info *list, size_t most)
{
    size_t n = 0;

    for (const struct exchange *x = all->active; x != NULL && n < most; x = x->next)
        if (is_listed(x))
            info(x, &list[n++]);
    const struct exchange *last = all->ended != NULL ? all->ended->prev : NULL;
    for (const struct exchange *x = last; x != NULL && n < most;
         x = x == all->ended ? NULL : x->prev) /* the head's prev is the tail */
        if (is_listed(x))
            info(x, &list[n++]);
    return n;
}

struct schedules *exchanges_schedules(struct exchanges *all)
{
    return all->schedules;
}

unsigned exchanges_under_way(const struct exchanges *all)
{
    return all->active_count;
}

uint64_t exchanges_reserved(const struct exchanges *all)
{
    return shares_total(all->set.shares, SHARE_TRANSIT) +
           shares_total(all->set.shares, SHARE_GROUPS);
}
