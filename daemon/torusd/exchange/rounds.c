/* Rounds and repetitions: from `go` until this node and all nodes below it are done. A few rounds overlap: a
 * child may be `window` rounds ahead of its parent, but its messages arrive in the order of the rounds. */
#include "daemon/torusd/exchange/rounds.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/lib/base/grow.h"
#include "daemon/torusd/exchange/abort.h"
#include "daemon/torusd/exchange/commit.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/kept_blocks.h"
#include "daemon/torusd/exchange/local_resources.h"
#include "daemon/torusd/exchange/plan_rates.h"
#include "daemon/torusd/exchange/tree_messages.h"
#include "proto/elapsed.h"

/* Lets the next round start here. */
static void admit_round(struct attempt *x)
{
    engine_admit(x->local.engine, x->rounds.admitted++);
}

static void begin_repetition(struct attempt *x)
{
    struct rounds *r = &x->rounds;
    uint64_t end = exchange_end_round(x);

    r->go_at = x->local.resumed != NULL && x->local.resumed->go_at != 0 ? x->local.resumed->go_at
                                                                        : router_now(router_of(x));
    r->slowest = 0;
    r->round = exchange_first_round(x);
    tree_messages_begin_wave(x);
    while (r->admitted < end && r->admitted < r->round + x->local.window)
        admit_round(x);
}

static void send_go(struct attempt *x)
{
    const struct peer_message message = {.kind = PEER_GO,
                                         .go = {.exchange = x->handle,
                                                .rounds = x->rounds.count,
                                                .repetition = x->rounds.repetition,
                                                .n_arrivals = x->barrier_times.n_told,
                                                .arrivals = x->barrier_times.told}};

    tree_messages_to_children(x, &message);
}

static void begin_rounds(struct attempt *x, uint64_t rounds)
{
    x->rounds.count = x->local.engine->rounds = rounds;
    if (kind_of(x)->has_session) /* the timeout covered only opening the group */
        x->deadline = router_now(router_of(x)) + SPEC_LONGEST_TIMEOUT;
    barrier_times_go(x);
    send_go(x);
    attempt_enter(x, EXCHANGE_RUNNING);
    begin_repetition(x);
    x->rounds.first_go_at = x->rounds.go_at;
    if (kind_of(x)->has_session) /* rates may have changed since it was prepared */
        plan_rates_heard(x->exchanges);
}

static void next_repetition(struct attempt *x)
{
    x->rounds.repetition++;
    send_go(x);
    if (!state_of(x)->moves)
        attempt_enter(x, EXCHANGE_RUNNING);
    begin_repetition(x);
}

bool rounds_are_due(const struct attempt *x)
{
    return x->state == EXCHANGE_PAUSED && attempt_is_root(x);
}

void rounds_resume(struct attempt *x)
{
    next_repetition(x);
    rounds_advance(x);
}

void rounds_begin(struct attempt *x)
{
    uint64_t largest = x->local.largest_block, each = x->local.round_bytes;
    uint64_t rounds = largest / each + (largest % each != 0);
    struct error e;

    rounds = rounds > 0 ? rounds : 1;
    if (spec_has_members(&x->spec))
        rounds = 2; /* exchange_types.h */
    if (rounds > UINT64_MAX / x->spec.repeat) {
        (void)error_set(&e, ERROR_USAGE,
                        "%" PRIu32 " times %" PRIu64 " rounds are too many: at most "
                        "%" PRIu64 " are possible",
                        x->spec.repeat, rounds, UINT64_MAX);
        attempt_fail(x, &e);
        return;
    }
    barrier_times_compare(x);
    begin_rounds(x, rounds);
    rounds_advance(x);
}

/* --- completing a wave --- */

/* Whether this node and all nodes below it have finished round x->rounds.round. */
static bool round_is_finished(const struct attempt *x)
{
    if (x->local.engine->rounds_finished <= x->rounds.round)
        return false;
    for (unsigned i = 0; i < x->tree.children; i++)
        if (x->rounds.finished_below[x->tree.child[i]] <= x->rounds.round)
            return false;
    return true;
}

static void send_round_go(struct attempt *x, uint64_t round)
{
    const struct peer_message message = {.kind = PEER_ROUND_GO, .round_go = {x->handle, round}};

    tree_messages_to_children(x, &message);
}

/* Called when all nodes have finished a round that is not the last; `done` reports the last one. */
static void all_finished_round(struct attempt *x)
{
    uint64_t round = x->rounds.round++;
    const struct peer_message message = {.kind = PEER_ROUND_DONE, .round_done = {x->handle, round}};

    if (attempt_is_root(x)) {
        if (plan_rates_call_for_another(x)) {
            retry_rates_changed(x);
        } else if (x->rounds.admitted < exchange_end_round(x)) {
            send_round_go(x, x->rounds.admitted);
            admit_round(x);
        }
        return;
    }
    tree_messages_to_parent(x, &message);
}

/* Root: records how long this repetition took. Returns 0, or -1 if the attempt has failed. */
static int note_repetition(struct attempt *x)
{
    struct repetitions *r = &x->job->repetitions;
    struct error e;

    if (GROW(r->each, r->count, r->room) != 0) {
        (void)error_set(&e, ERROR_MEMORY, "out of memory for the repetitions' times");
        attempt_fail(x, &e);
        return -1;
    }
    r->each[r->count++] = x->rounds.slowest;
    return 0;
}

/* Called when all nodes have finished a repetition that is not the last. */
static void all_repeated(struct attempt *x)
{
    const struct peer_message message = {.kind = PEER_REPEATED,
                                         .repeated = {.exchange = x->handle,
                                                      .repetition = x->rounds.repetition,
                                                      .nanoseconds = x->rounds.slowest}};

    if (attempt_is_root(x)) {
        if (note_repetition(x) != 0)
            return;
        if (plan_rates_have_changed(x))
            retry_rates_changed(x);
        else if (x->tree.children > 0)
            next_repetition(x);
        else /* no node to wait for: let the rest of this process run first */
            attempt_enter(x, EXCHANGE_PAUSED);
        return;
    }
    attempt_enter(x, EXCHANGE_PAUSED);
    tree_messages_to_parent(x, &message);
}

static void all_done_at_root(struct attempt *x)
{
    const uint64_t first_go_at = x->job->repetitions.first_go_at;
    struct rounds *r = &x->rounds;
    struct error e = {.code = ERROR_NONE};

    for (uint32_t i = 0; i < x->report.nodes; i++)
        if (x->report.node[i].nanoseconds > r->slowest)
            r->slowest = x->report.node[i].nanoseconds;
    r->all_ns = elapsed(first_go_at != 0 ? first_go_at : r->first_go_at, router_now(router_of(x)));
    if (note_repetition(x) != 0)
        return;
    if (report_check(x, &e) != 0 && e.code == ERROR_DAMAGED && retry_after_damage(x))
        retry_damaged(x, &e);
    else if (e.code != ERROR_NONE)
        attempt_fail(x, &e);
    else if (exchange_is_durable(x))
        commit_decide(x);
    else
        attempt_end(x, EXCHANGE_COMMITTED);
}

static void all_done(struct attempt *x)
{
    struct error e;

    if (attempt_is_root(x)) {
        all_done_at_root(x);
    } else if (report_send(x) != 0) {
        (void)error_set(&e, ERROR_MEMORY, "node %u is out of memory for a report", rank_of(x));
        (void)error_blame_node(&e, rank_of(x));
        attempt_fail(x, &e);
    } else if (exchange_is_durable(x)) {
        attempt_enter(x, EXCHANGE_DONE);
    } else {
        attempt_end(x, EXCHANGE_FINISHED);
    }
}

/* Resets the counters for the next repetition. None of its data can have been counted yet: no node starts it
 * before this one has reported. */
static void reset_counts(struct engine_counts *counts)
{
    memset(counts->port, 0, sizeof counts->port);
    counts->most_starts = counts->most_ends = 0;
    counts->bytes_delivered = 0;
    for (uint32_t step = 0; step < counts->steps; step++)
        counts->step_blocks[step] = counts->step_messages[step] = 0;
}

/* Reports this node's own part of `done` or `repeated`, once it has finished the last round. Returns 0, or -1
 * if the attempt has failed. */
static int own_part(struct attempt *x, struct error *e)
{
    struct engine *engine = x->local.engine;
    uint64_t nanoseconds = elapsed(x->rounds.go_at, engine->counts.delivered_at);

    if (engine->rounds_finished < exchange_end_round(x))
        return 0;
    if (!exchange_last_repetition(x)) {
        if (nanoseconds > x->rounds.slowest)
            x->rounds.slowest = nanoseconds;
        local_resources_count(x);
        reset_counts(&engine->counts);
    } else {
        bool written = x->local.sink->ops->finish(x->local.sink);
        bool checked = x->local.source->ops->finish(x->local.source);
        if (!written || !checked)
            return 0;
        if (report_add_own(x, nanoseconds, e) != 0)
            return -1;
    }
    x->awaited &= ~OWN_PART;
    return 0;
}

void rounds_advance(struct attempt *x)
{
    struct error e;

    e.code = ERROR_NONE; /* the text is long, and this is called for each frame */
    while (state_of(x)->moves) {
        const struct error *failed = engine_failed(x->local.engine);
        if (failed != NULL)
            e = *failed;
        else if ((x->awaited & OWN_PART) != 0)
            (void)own_part(x, &e);
        if (e.code != ERROR_NONE) {
            (void)error_wrap_node(&e, rank_of(x));
            if (e.code == ERROR_DAMAGED)
                attempt_damaged(x, &e);
            else
                attempt_fail(x, &e);
            return;
        }
        if (x->rounds.round + 1 < exchange_end_round(x)) {
            if (!round_is_finished(x))
                return;
            all_finished_round(x);
        } else if (x->awaited != 0) {
            return;
        } else if (!exchange_last_repetition(x)) {
            all_repeated(x);
        } else {
            all_done(x);
        }
    }
}

/* --- messages --- */

static int unexpected_message(const struct attempt *x, const char *what, struct error *e)
{
    return error_set(e, ERROR_PROTOCOL, "exchange %s is %s: unexpected message \"%s\"", x->id.text,
                     exchange_state_name(x->state), what);
}

int go_heard(struct attempt *x, unsigned port, const struct peer_go *message, struct error *e)
{
    (void)port;
    if (x->state == EXCHANGE_READY && message->repetition == 0 && message->rounds > 0 &&
        message->rounds <= UINT64_MAX / x->spec.repeat) {
        if (barrier_times_set(x, message->arrivals, message->n_arrivals, e) != 0)
            return -1;
        begin_rounds(x, message->rounds);
    } else if (x->state == EXCHANGE_PAUSED && message->repetition == x->rounds.repetition + 1 &&
               message->rounds == x->rounds.count) {
        next_repetition(x);
    } else {
        return unexpected_message(x, "go", e);
    }
    return 0;
}

int round_done_heard(struct attempt *x, unsigned port, const struct peer_round_done *done,
                     struct error *e)
{
    uint64_t round = done->round;

    if (round != x->rounds.finished_below[port] || round + 1 >= exchange_end_round(x) ||
        round >= x->rounds.admitted)
        return unexpected_message(x, "round done", e);
    x->rounds.finished_below[port]++;
    return 0;
}

int round_go_heard(struct attempt *x, unsigned port, const struct peer_round_go *message,
                   struct error *e)
{
    const struct rounds *r = &x->rounds;

    (void)port;
    if (message->round != r->admitted || r->admitted >= exchange_end_round(x) ||
        r->admitted >= r->round + x->local.window)
        return unexpected_message(x, "round go", e);
    send_round_go(x, r->admitted);
    admit_round(x);
    return 0;
}

/* Whether the child at this port has reported all rounds of the repetition except the last one. */
static bool lacks_last_round(const struct attempt *x, unsigned port)
{
    return x->rounds.finished_below[port] + 1 == exchange_end_round(x) &&
           x->rounds.admitted == exchange_end_round(x);
}

int repeated_heard(struct attempt *x, unsigned port, const struct peer_repeated *repeated,
                   struct error *e)
{
    if (!lacks_last_round(x, port) || exchange_last_repetition(x) ||
        repeated->repetition != x->rounds.repetition)
        return unexpected_message(x, "repeated", e);
    if (tree_messages_child_part(x, port, e) != 0)
        return -1;
    if (repeated->nanoseconds > x->rounds.slowest)
        x->rounds.slowest = repeated->nanoseconds;
    x->rounds.finished_below[port]++;
    return 0;
}

int done_heard(struct attempt *x, unsigned port, const struct peer_done *done, struct error *e)
{
    if (!lacks_last_round(x, port) || !exchange_last_repetition(x))
        return unexpected_message(x, "done", e);
    if (tree_messages_child_part(x, port, e) != 0 || report_add_child(x, port, done, e) != 0)
        return -1;
    x->rounds.finished_below[port]++;
    return 0;
}
