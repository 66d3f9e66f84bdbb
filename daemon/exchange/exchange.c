#include "daemon/exchange/exchange.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/text.h"
#include "daemon/exchange/choose.h"
#include "daemon/exchange/internal.h"

#define ENDED_REMEMBERED 64u /* for stale frames and for status */

const char *exchange_state_name(enum exchange_state state)
{
    switch (state) {
    case EXCHANGE_PREPARING:
        return "preparing";
    case EXCHANGE_READY:
        return "ready";
    case EXCHANGE_RUNNING:
        return "running";
    case EXCHANGE_DONE:
        return "done";
    case EXCHANGE_COMMITTING:
        return "committing";
    case EXCHANGE_FAILING:
        return "failing";
    case EXCHANGE_COMMITTED:
        return "committed";
    case EXCHANGE_FAILED:
        return "failed";
    case EXCHANGE_IN_DOUBT:
        return "in doubt";
    }
    return "unknown";
}

struct exchanges *exchanges_new(const struct exchanges_setup *setup)
{
    struct exchanges *all = calloc(1, sizeof *all);

    if (all == NULL)
        return NULL;
    all->set = *setup;
    all->ask_at = ROUTER_NEVER;
    all->least_pause = INFINITY;
    all->planned = calloc(algorithm_count(), sizeof *all->planned);
    if (all->planned == NULL) {
        free(all);
        return NULL;
    }
    router_random(setup->router, &all->counter, sizeof all->counter);
    all->counter &= 0xffff;
    doubts_load(all);
    calibration_load(all);
    return all;
}

void exchange_release(struct exchange *x, bool keep_output)
{
    engine_free(x->engine);
    x->engine = NULL;
    plan_free(&x->own.plan);
    if (x->source != NULL)
        x->source->ops->close(x->source);
    x->source = NULL;
    if (x->sink != NULL)
        x->sink->ops->close(x->sink, keep_output);
    x->sink = NULL;
    x->all->reserved -= x->reserved;
    x->reserved = 0;
}

void exchange_forget(struct exchange *x)
{
    if (exchange_over(x))
        HASH_DEL(x->all->ended, x);
    else
        HASH_DEL(x->all->active, x);
    report_free(&x->report);
    free(x->each);
    free(x);
}

void exchanges_free(struct exchanges *all)
{
    struct exchange *x, *next;

    HASH_ITER(hh, all->active, x, next)
    {
        /* An output that may have been committed elsewhere stays for the next start. */
        exchange_release(x, x->state == EXCHANGE_DONE && !exchange_is_root(x));
        exchange_forget(x);
    }
    HASH_ITER(hh, all->ended, x, next)
    exchange_forget(x);
    for (size_t i = 0; i < algorithm_count(); i++) {
        if (all->planned[i].built)
            plan_free(&all->planned[i].plan);
        passages_free(&all->planned[i].passages);
    }
    free(all->planned);
    doubts_free(all);
    free(all);
}

void exchange_rename(struct exchange *x, uint32_t handle, const char *id, uint32_t root)
{
    x->handle = handle;
    x->root = root;
    (void)snprintf(x->id, sizeof x->id, "%s", id);
    if (root != TORUS_NO_NODE)
        x->root_boot = router_topology(x->all->set.router)->entry[root].boot;
}

struct exchange *exchange_add(struct exchanges *all, uint32_t handle, const char *id, uint32_t root)
{
    struct exchange *x = calloc(1, sizeof *x);

    if (x == NULL)
        return NULL;
    x->all = all;
    exchange_rename(x, handle, id, root);
    x->began = router_now(all->set.router);
    x->deadline = x->fault_at = ROUTER_NEVER;
    x->rounds = x->repeat = 1;
    HASH_ADD(hh, all->active, handle, sizeof x->handle, x);
    return x;
}

struct exchange *exchange_find(struct exchanges *all, uint32_t handle)
{
    struct exchange *x;

    HASH_FIND(hh, all->active, &handle, sizeof handle, x);
    if (x == NULL)
        HASH_FIND(hh, all->ended, &handle, sizeof handle, x);
    return x;
}

void exchange_end(struct exchange *x, enum exchange_state state)
{
    struct exchanges *all = x->all;

    if (!exchange_over(x)) {
        HASH_DEL(all->active, x);
        HASH_ADD(hh, all->ended, handle, sizeof x->handle, x);
        all->untold += x->has_client;
    }
    x->state = state;
    if (state == EXCHANGE_COMMITTED)
        log_info("exchange %s: done", x->id);
    else if (state == EXCHANGE_FAILED)
        log_warning("exchange %s failed: %s", x->id, x->failure.text);
    else
        doubt_add(all, x->id);
    exchange_release(x, state == EXCHANGE_IN_DOUBT);
}

static uint32_t handle_of(const Peer__Head *head)
{
    struct engine_data data;

    if (engine_data(head, &data))
        return data.exchange;
    switch (head->kind_case) {
    case PEER__HEAD__KIND_CLEAR:
        return head->clear->exchange;
    case PEER__HEAD__KIND_READY:
        return head->ready->exchange;
    case PEER__HEAD__KIND_GO:
        return head->go->exchange;
    case PEER__HEAD__KIND_REPEATED:
        return head->repeated->exchange;
    case PEER__HEAD__KIND_ROUND_DONE:
        return head->round_done->exchange;
    case PEER__HEAD__KIND_ROUND_GO:
        return head->round_go->exchange;
    case PEER__HEAD__KIND_DONE:
        return head->done->exchange;
    case PEER__HEAD__KIND_COMMIT:
        return head->commit->exchange;
    case PEER__HEAD__KIND_COMMITTED:
        return head->committed->exchange;
    default:
        return UINT32_MAX;
    }
}

/* From when this node is ready until it has finished the last round. A neighbour may hear of a `go`
 * before it does: what belongs to the first rounds after that one has its place, too. */
static bool expects_data(const struct exchange *x, const Peer__Head *head)
{
    uint64_t finished, round, end = 0;
    struct engine_data data;

    if (x->engine == NULL || (x->state != EXCHANGE_READY && x->state != EXCHANGE_RUNNING))
        return false;
    finished = round = x->engine->rounds_finished;
    if (engine_data(head, &data))
        round += (data.round - finished) & ENGINE_ROUND_MASK;
    if (x->state == EXCHANGE_RUNNING)
        end = exchange_end_round(x);
    if (finished < end)
        return round < end;
    return (end == 0 || !exchange_last_repetition(x)) && round < end + x->window;
}

int exchanges_frame(struct exchanges *all, unsigned port, const Peer__Head *head,
                    const struct extents *body, uint32_t body_length, struct error *e)
{
    struct exchange *x;

    switch (head->kind_case) {
    case PEER__HEAD__KIND_PREPARE:
        return prepare_heard(all, port, head->prepare, e);
    case PEER__HEAD__KIND_ABORT:
        return failure_heard(all, port, head->abort, e);
    case PEER__HEAD__KIND_OUTCOME_QUERY:
        return doubt_query_heard(all, head->outcome_query, e);
    case PEER__HEAD__KIND_OUTCOME:
        return doubt_outcome_heard(all, head->outcome, e);
    case PEER__HEAD__KIND_CALIBRATION:
        return calibration_heard(all, port, head->calibration, e);
    default:
        break;
    }
    x = exchange_find(all, handle_of(head));
    if (x == NULL)
        return error_set(e, ERROR_PROTOCOL, "a frame of exchange %u, which nobody prepared",
                         handle_of(head));
    /* Frames of an exchange that has failed meanwhile are on their way for a while. */
    if (exchange_over(x) || x->state == EXCHANGE_FAILING || (x->lost & 1u << port) != 0)
        return 0;
    if (!engine_data(head, &(struct engine_data){0}) && head->kind_case != PEER__HEAD__KIND_CLEAR)
        return wave_word(x, port, head, e);
    if (!expects_data(x, head))
        return error_set(e, ERROR_PROTOCOL, "exchange %s is %s: data that has no place there",
                         x->id, exchange_state_name(x->state));
    if (head->kind_case == PEER__HEAD__KIND_CLEAR)
        return engine_clear(x->engine, port, head->clear, e) == 0
                   ? 0
                   : error_wrap(e, "exchange %s", x->id);
    if (engine_frame(x->engine, port, head, body, body_length, e) != 0)
        return error_wrap(e, "exchange %s", x->id);
    exchange_advance(x);
    return 0;
}

struct outgoing *exchanges_next(struct exchanges *all, unsigned port)
{
    struct exchange *x;

    /* Round robin: the one after the last that sent here is asked first. */
    HASH_FIND(hh, all->active, &all->next_handle[port], sizeof all->next_handle[port], x);
    for (unsigned i = HASH_COUNT(all->active); i > 0 && all->active != NULL; i--) {
        if (x == NULL)
            x = all->active;
        struct exchange *next = x->hh.next;
        if (x->state == EXCHANGE_RUNNING) {
            struct outgoing *frame = engine_next(x->engine, port);
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

void exchanges_topology(struct exchanges *all)
{
    struct exchange *x, *next;

    HASH_ITER(hh, all->active, x, next)
    failure_topology(x);
    calibration_topology(all);
}

uint64_t exchanges_deadline(const struct exchanges *all)
{
    uint64_t at = all->ask_at;

    for (const struct exchange *x = all->active; x != NULL; x = x->hh.next) {
        uint64_t one = (x->waiting & TURN_PART) != 0 ? 0 : failure_deadline(x);
        if (one < at)
            at = one;
    }
    return all->untold > 0 || HASH_COUNT(all->ended) > ENDED_REMEMBERED ? 0 : at;
}

static void tell_client(struct exchange *x)
{
    struct exchange_result result;
    struct error e = x->failure;

    x->client_told = true;
    x->all->untold--;
    if (x->state == EXCHANGE_COMMITTED && x->unconfirmed) {
        (void)error_set(&e, ERROR_IN_DOUBT,
                        "committed, but not every node has confirmed it (%s); those that have not "
                        "finish when they are back",
                        x->fault.text);
    } else if (x->state == EXCHANGE_COMMITTED && e.code == ERROR_NONE) {
        choose_learn(x);
        report_result(x, &result);
        x->client.ended(x->client.context, &result, NULL);
        return;
    }
    x->client.ended(x->client.context, NULL, &e);
}

void exchanges_tick(struct exchanges *all)
{
    uint64_t now = router_now(all->set.router);
    struct exchange *x, *next;

    HASH_ITER(hh, all->active, x, next)
    {
        failure_tick(x, now);
        if (!exchange_over(x) && (x->waiting & TURN_PART) != 0)
            exchange_resume(x);
    }
    HASH_ITER(hh, all->ended, x, next)
    {
        if (x->has_client && !x->client_told)
            tell_client(x);
        if (HASH_COUNT(all->ended) > ENDED_REMEMBERED)
            exchange_forget(x);
    }
    doubts_tick(all, now);
}

void exchange_stop(struct exchange *x)
{
    const struct error e = {ERROR_CANCELLED, "cancelled by its client"};

    failure_here(x, &e);
}

void exchange_cancel(struct exchange *x)
{
    if (exchange_over(x))
        x->all->untold--;
    x->has_client = false;
    exchange_stop(x);
}

const char *exchange_id(const struct exchange *x)
{
    return x->id;
}

void exchange_progress(const struct exchange *x, struct exchange_progress *progress)
{
    uint64_t takes = exchange_takes(x, router_rank(x->all->set.router));
    uint64_t bytes = x->to[0] == '\0' ? takes * x->block_bytes : 0;
    /* What a node has counted is forgotten when it has finished a repetition. */
    uint32_t finished =
        x->repetition + (x->state == EXCHANGE_RUNNING && !exchange_last_repetition(x) &&
                         (x->waiting & OWN_PART) == 0);

    *progress = (struct exchange_progress){
        .state = x->state,
        .repetition = x->repetition,
        .repeat = x->repeat,
        .round = x->round - exchange_first_round(x),
        .rounds = x->rounds,
        .done_bytes = x->engine != NULL ? x->engine->counts.bytes_delivered : 0,
    };
    if (__builtin_mul_overflow(bytes, x->repeat, &progress->total_bytes))
        progress->total_bytes = 0; /* too much to be told */
    else
        progress->done_bytes += bytes * finished;
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
                   x->algorithm != NULL ? x->algorithm->name : "?");
    (void)snprintf(out->reason, sizeof out->reason, "%s", x->failure.text);
}

size_t exchanges_list(const struct exchanges *all, struct exchange_info *list, size_t most)
{
    size_t n = 0;

    for (const struct exchange *x = all->active; x != NULL && n < most; x = x->hh.next)
        info(x, &list[n++]);
    if (all->ended != NULL) {
        struct UT_hash_table *table = all->ended->hh.tbl;
        for (const struct exchange *x = ELMT_FROM_HH(table, table->tail); x != NULL && n < most;
             x = x->hh.prev)
            info(x, &list[n++]);
    }
    return n;
}

uint64_t exchanges_reserved(const struct exchanges *all)
{
    return all->reserved;
}
