#include "daemon/torusd/exchange/attempt.h"

#include <stdlib.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/kept_blocks.h"
#include "daemon/torusd/exchange/local_resources.h"
#include "daemon/torusd/exchange/membership.h"
#include "daemon/torusd/exchange/tracing.h"
#include "daemon/torusd/planning/schedule_store.h"
#include "proto/elapsed.h"

#define HANDLE_MASK 0x0fffffffu /* a handle has at most four bytes on the wire */

/* Removes an attempt from the table and from its list. */
static void take_out(struct attempt *x)
{
    struct exchanges *exchanges = x->exchanges;

    if (x->hh.tbl != NULL)
        HASH_DEL(exchanges->table, x);
    if (state_of(x)->ended) {
        DL_DELETE(exchanges->ended, x);
        exchanges->ended_count--;
    } else {
        DL_DELETE(exchanges->active, x);
        exchanges->active_count--;
    }
}

void attempt_leave_schedule(struct attempt *x)
{
    avoided_leave_routes(x);
    tracing_leave(x);
    if (x->schedule == NULL)
        return;
    schedules_leave(x->exchanges->schedules, x->schedule);
    x->schedule = NULL;
    x->algorithm = NULL;
}

void attempt_forget(struct attempt *x)
{
    attempt_leave_schedule(x);
    if (x->exchanges != NULL)
        take_out(x);
    avoided_drop(x);
    report_free(&x->report);
    barrier_times_free(&x->barrier_times);
    spec_free(&x->spec);
    free(x->confirmed);
    free(x->doubt);
    free(x);
}

void attempt_free_when_closed(struct attempt *x)
{
    if (x->local.closing == 0) {
        attempt_forget(x);
        return;
    }
    attempt_leave_schedule(x);
    take_out(x);
    x->exchanges = NULL;
}

static bool is_taken(struct exchanges *exchanges, uint32_t handle)
{
    const struct job *j = exchanges->jobs;

    while (j != NULL && j->name.handle != handle)
        j = j->next;
    return j != NULL || attempt_find(exchanges, handle) != NULL;
}

void attempt_new_name(struct exchanges *exchanges, struct attempt_name *name)
{
    uint32_t nodes = router_torus(exchanges->set.router)->nodes,
             rank = router_rank(exchanges->set.router);
    uint32_t counter, handle;

    do {
        counter = ++exchanges->counter;
        handle = (uint32_t)((uint64_t)counter * nodes + rank) & HANDLE_MASK;
    } while (is_taken(exchanges, handle));
    name->handle = handle;
    name->id = exchange_id_make(rank, (uint32_t)router_boot(exchanges->set.router), counter);
}

struct attempt *attempt_new(struct exchanges *exchanges, const struct attempt_name *name,
                            uint32_t root)
{
    struct attempt *x = calloc(1, sizeof *x);

    if (x == NULL)
        return NULL;
    x->exchanges = exchanges;
    x->state = EXCHANGE_STARTING;
    x->handle = name->handle;
    x->root = root;
    x->id = name->id;
    x->root_boot = router_topology(exchanges->set.router)->entry[root].boot;
    x->made_at = x->began = router_now(exchanges->set.router);
    HASH_ADD(hh, exchanges->table, handle, sizeof x->handle, x);
    if (x->hh.tbl == NULL) {
        free(x);
        return NULL;
    }
    x->deadline = ROUTER_NEVER;
    x->fault = NO_FAULT;
    x->rounds.count = 1;
    DL_APPEND(exchanges->active, x);
    exchanges->active_count++;
    return x;
}

struct attempt *attempt_find(struct exchanges *exchanges, uint32_t handle)
{
    struct attempt *x;

    HASH_FIND(hh, exchanges->table, &handle, sizeof handle, x);
    return x;
}

struct attempt *attempt_find_id(const struct exchanges *exchanges, const struct exchange_id *id)
{
    struct attempt *x = exchanges->active;

    while (x != NULL && !exchange_id_equal(&x->id, id))
        x = x->next;
    if (x != NULL)
        return x;
    x = exchanges->ended;
    while (x != NULL && !exchange_id_equal(&x->id, id))
        x = x->next;
    return x;
}

struct attempt *attempt_find_text(const struct exchanges *exchanges, const char *text)
{
    struct exchange_id id;

    return exchange_id_parse(&id, text) == 0 ? attempt_find_id(exchanges, &id) : NULL;
}

static void tell_log(const struct attempt *x)
{
    switch (x->state) {
    case EXCHANGE_FINISHED:
        log_debug("exchange %s: this node has done its part", x->id.text);
        break;
    case EXCHANGE_COMMITTED:
        if (x->failure.code == ERROR_NONE)
            log_info("exchange %s: done", x->id.text);
        else
            log_warning("exchange %s: %s", x->id.text, x->failure.text);
        break;
    case EXCHANGE_WITHDRAWN:
        log_debug("exchange %s will be retried: %s", x->id.text, x->failure.text);
        break;
    case EXCHANGE_FAILED:
        log_warning("exchange %s failed: %s", x->id.text, x->failure.text);
        break;
    case EXCHANGE_IN_DOUBT:
        log_warning("exchange %s is in doubt (%s): its output is kept under its temporary name",
                    x->id.text, x->failure.text);
        break;
    default:
        break;
    }
}

/* Counts that the attempt has entered a state in which it has ended. */
static void count_end(const struct attempt *x)
{
    struct exchange_totals *totals = &x->exchanges->totals;
    const uint64_t began = x->job != NULL ? x->job->began : x->began;

    totals->ended[x->spec.operation][x->state]++;
    if ((x->state == EXCHANGE_FINISHED || x->state == EXCHANGE_COMMITTED) &&
        !kind_of(x)->has_session)
        histogram_add(&totals->duration,
                      (double)elapsed(began, router_now(router_of(x))) / (double)SECONDS);
}

void attempt_closed_one(struct attempt *x)
{
    if (--x->local.closing > 0)
        return;
    x->exchanges->tellable += x->job != NULL && job_is_tellable(x->job);
    x->exchanges->start_due = true;
}

void attempt_enter(struct attempt *x, enum exchange_state state)
{
    struct exchanges *exchanges = x->exchanges;
    bool had_ended = state_of(x)->ended, ends = exchange_has_ended(state);

    if ((state_of(x)->next & 1u << state) == 0 && exchanges->broken.code == ERROR_NONE) {
        (void)error_set(&exchanges->broken, ERROR_PROTOCOL,
                        "exchange %s changes from %s to %s, which its table forbids", x->id.text,
                        state_of(x)->name, attempt_states[state].name);
        log_error("%s: this is a bug", exchanges->broken.text);
    }
    x->state = state;
    tracing_note_state(x);
    if (ends)
        count_end(x);
    if (attempt_states[state].awaited == NONE)
        x->awaited = 0;
    if (ends && !had_ended) {
        DL_DELETE(exchanges->active, x);
        DL_APPEND(exchanges->ended, x);
        exchanges->active_count--;
        exchanges->ended_count++;
    }
    if (attempt_states[state].engine == NONE)
        local_resources_release_engine(x);
    if (attempt_states[state].blocks == NONE)
        local_resources_close(x, state == EXCHANGE_IN_DOUBT);
    if (state == EXCHANGE_FAILED && !attempt_may_be_followed(x))
        kept_blocks_drop(x);
    if (ends && !had_ended)
        exchanges->start_due = true;
    tell_log(x);
}
