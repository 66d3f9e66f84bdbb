/* The waves of an exchange over its tree: in each a node hears from its children, and from itself,
 * before it tells its parent; what the root then decides goes down to all.
 *
 * The waves of rounds overlap: `window` rounds may be under way, so a child may be that many ahead
 * of its parent. A child's words come in the order of the rounds all the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/text.h"
#include "daemon/exchange/internal.h"

static uint32_t children_mask(const struct exchange *x)
{
    uint32_t mask = 0;

    for (unsigned i = 0; i < x->tree.children; i++)
        mask |= 1u << x->tree.child[i];
    return mask;
}

void wave_begin(struct exchange *x)
{
    x->waiting = children_mask(x) | OWN_PART;
}

/* A link that has been down may lead to a node that has forgotten the exchange. */
void exchange_send(struct exchange *x, unsigned port, const Peer__Head *head)
{
    if ((x->lost & 1u << port) == 0)
        router_send(x->all->set.router, port, head);
}

void wave_to_children(struct exchange *x, const Peer__Head *head)
{
    for (unsigned i = 0; i < x->tree.children; i++)
        exchange_send(x, x->tree.child[i], head);
}

/* A child's part of the current wave has come. */
static int child_part(struct exchange *x, unsigned port, struct error *e)
{
    if ((x->waiting & 1u << port) == 0)
        return error_set(e, ERROR_PROTOCOL, "exchange %s: a word that is not owed here", x->id);
    x->waiting &= ~(1u << port);
    return 0;
}

static bool is_child(const struct exchange *x, unsigned port)
{
    return (children_mask(x) & 1u << port) != 0;
}

/* The next round may leave from here. */
static void admit(struct exchange *x)
{
    engine_admit(x->engine, x->admitted++);
}

static void begin_repetition(struct exchange *x)
{
    uint64_t end = exchange_end_round(x);

    x->went = router_now(x->all->set.router);
    x->slowest = 0;
    x->round = exchange_first_round(x);
    wave_begin(x);
    while (x->admitted < end && x->admitted < x->round + x->window)
        admit(x);
}

static void go(struct exchange *x, uint64_t rounds)
{
    x->state = EXCHANGE_RUNNING;
    x->rounds = x->engine->rounds = rounds;
    x->first_went = router_now(x->all->set.router);
    begin_repetition(x);
}

static void send_go(struct exchange *x, uint64_t rounds)
{
    Peer__Go message = PEER__GO__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    message.exchange = x->handle;
    message.rounds = rounds;
    message.repetition = x->repetition;
    head.kind_case = PEER__HEAD__KIND_GO;
    head.go = &message;
    wave_to_children(x, &head);
}

static void go_on(struct exchange *x)
{
    x->repetition++;
    send_go(x, x->rounds);
    begin_repetition(x);
}

void exchange_resume(struct exchange *x)
{
    x->waiting &= ~TURN_PART;
    go_on(x);
    exchange_advance(x);
}

static void send_round_go(struct exchange *x, uint64_t round)
{
    Peer__RoundGo message = PEER__ROUND_GO__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    message.exchange = x->handle;
    message.round = round;
    head.kind_case = PEER__HEAD__KIND_ROUND_GO;
    head.round_go = &message;
    wave_to_children(x, &head);
}

/* From here on the output is on its way to its final name. */
static void commit_here(struct exchange *x)
{
    Peer__Commit message = PEER__COMMIT__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    struct error e;

    x->state = EXCHANGE_COMMITTING;
    message.exchange = x->handle;
    head.kind_case = PEER__HEAD__KIND_COMMIT;
    head.commit = &message;
    wave_to_children(x, &head);
    wave_begin(x);
    if (x->sink->ops->commit(x->sink, &e) != 0) {
        (void)error_wrap(&e, "node %u could not put its output in place",
                         router_rank(x->all->set.router));
        log_error("exchange %s: %s", x->id, e.text);
        x->failure = e;
    }
    x->waiting &= ~OWN_PART;
}

/* --- what completes a wave --- */

static void all_ready(struct exchange *x)
{
    if (exchange_is_root(x)) {
        uint64_t rounds = (x->largest_block + x->segment_bytes - 1) / x->segment_bytes;
        struct error e;
        rounds = rounds > 0 ? rounds : 1;
        if (rounds > UINT64_MAX / x->repeat) {
            (void)error_set(&e, ERROR_USAGE, "more rounds than can be counted");
            failure_here(x, &e);
            return;
        }
        send_go(x, rounds);
        go(x, rounds);
        return;
    }
    Peer__Ready message = PEER__READY__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    message.exchange = x->handle;
    message.largest_block = x->largest_block;
    head.kind_case = PEER__HEAD__KIND_READY;
    head.ready = &message;
    x->state = EXCHANGE_READY;
    exchange_send(x, (unsigned)x->tree.parent, &head);
}

/* Whether this node and all below it have finished the round x->round. */
static bool round_is_finished(const struct exchange *x)
{
    if (x->engine->rounds_finished <= x->round)
        return false;
    for (unsigned i = 0; i < x->tree.children; i++)
        if (x->finished_below[x->tree.child[i]] <= x->round)
            return false;
    return true;
}

/* Not the last round, which `done` reports. */
static void all_finished_round(struct exchange *x)
{
    uint64_t round = x->round++;

    if (exchange_is_root(x)) {
        if (x->admitted < exchange_end_round(x)) {
            send_round_go(x, x->admitted);
            admit(x);
        }
        return;
    }
    Peer__RoundDone message = PEER__ROUND_DONE__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    message.exchange = x->handle;
    message.round = round;
    head.kind_case = PEER__HEAD__KIND_ROUND_DONE;
    head.round_done = &message;
    exchange_send(x, (unsigned)x->tree.parent, &head);
}

/* Root only: how long this repetition took. Returns 0, or -1 having failed. */
static int note_repetition(struct exchange *x)
{
    struct error e;

    if (x->each_count == x->each_room) {
        uint32_t room = x->each_room == 0 ? 1 : 2 * x->each_room;
        uint64_t *each = reallocarray(x->each, room, sizeof *each);
        if (each == NULL) {
            (void)error_set(&e, ERROR_MEMORY, "no memory for the repetitions' times");
            failure_here(x, &e);
            return -1;
        }
        x->each = each;
        x->each_room = room;
    }
    x->each[x->each_count++] = x->slowest;
    return 0;
}

/* All have finished a repetition that is not the last. */
static void all_repeated(struct exchange *x)
{
    if (exchange_is_root(x)) {
        if (note_repetition(x) != 0)
            return;
        if (x->tree.children > 0)
            go_on(x);
        else
            x->waiting = TURN_PART;
        return;
    }
    Peer__Repeated message = PEER__REPEATED__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    message.exchange = x->handle;
    message.repetition = x->repetition;
    message.nanoseconds = x->slowest;
    head.kind_case = PEER__HEAD__KIND_REPEATED;
    head.repeated = &message;
    x->waiting = 1u << x->tree.parent; /* until it says that the next one may start */
    exchange_send(x, (unsigned)x->tree.parent, &head);
}

static void all_done(struct exchange *x)
{
    struct error e;

    x->state = EXCHANGE_DONE;
    if (!exchange_is_root(x)) {
        if (report_send(x, (unsigned)x->tree.parent) != 0) {
            (void)error_set(&e, ERROR_MEMORY, "no memory for a report");
            failure_here(x, &e);
        } else if (x->to[0] == '\0') {
            exchange_end(x, EXCHANGE_COMMITTED); /* nothing to commit */
        }
        return;
    }
    for (uint32_t i = 0; i < x->report.nodes; i++)
        if (x->report.node[i].nanoseconds > x->slowest)
            x->slowest = x->report.node[i].nanoseconds;
    x->all_ns = router_now(x->all->set.router) - x->first_went;
    if (note_repetition(x) != 0)
        return;
    if (report_check(x, &e) != 0) {
        failure_here(x, &e);
    } else if (x->to[0] == '\0') {
        exchange_end(x, EXCHANGE_COMMITTED);
    } else if (x->all->set.storage->record_commit(x->all->set.storage->context, x->id, &e) != 0) {
        failure_here(x, &e);
    } else {
        commit_here(x);
    }
}

static void all_committed(struct exchange *x)
{
    if (!exchange_is_root(x)) {
        Peer__Committed message = PEER__COMMITTED__INIT;
        Peer__Head head = PEER__HEAD__INIT;
        message.exchange = x->handle;
        message.failure = x->failure.text;
        head.kind_case = PEER__HEAD__KIND_COMMITTED;
        head.committed = &message;
        exchange_send(x, (unsigned)x->tree.parent, &head);
    } else if (x->failure.code == ERROR_NONE) {
        x->all->set.storage->forget_commit(x->all->set.storage->context, x->id);
    }
    exchange_end(x, EXCHANGE_COMMITTED);
}

/* What has been counted in one repetition does not belong to the next. Nothing of that can have
 * come in yet: no node starts it before this one has reported. */
static void count_anew(struct engine_counts *counts)
{
    memset(counts->port, 0, sizeof counts->port);
    counts->most_starts = counts->most_ends = 0;
    counts->bytes_delivered = 0;
    for (uint32_t step = 0; step < counts->steps; step++)
        counts->step_blocks[step] = counts->step_messages[step] = 0;
}

/* This node's own part of `done` or `repeated`, once it has finished the last round. */
static int own_part(struct exchange *x, struct error *e)
{
    uint64_t nanoseconds = x->engine->counts.delivered_at - x->went;

    if (x->engine->rounds_finished < exchange_end_round(x))
        return 0;
    if (!exchange_last_repetition(x)) {
        if (nanoseconds > x->slowest)
            x->slowest = nanoseconds;
        count_anew(&x->engine->counts);
    } else if (!x->sink->ops->finish(x->sink)) {
        return 0;
    } else if (report_add_own(x, nanoseconds, e) != 0) {
        return -1;
    }
    x->waiting &= ~OWN_PART;
    return 0;
}

void exchange_advance(struct exchange *x)
{
    struct error e;

    for (;;) {
        enum exchange_state state = x->state;

        if (state != EXCHANGE_PREPARING && state != EXCHANGE_RUNNING &&
            state != EXCHANGE_COMMITTING)
            return;
        if (x->engine != NULL && engine_failed(x->engine) != NULL) {
            e = *engine_failed(x->engine);
            (void)error_wrap(&e, "node %u", router_rank(x->all->set.router));
            failure_here(x, &e);
            return;
        }
        if (state == EXCHANGE_RUNNING && (x->waiting & OWN_PART) != 0 && own_part(x, &e) != 0) {
            (void)error_wrap(&e, "node %u", router_rank(x->all->set.router));
            failure_here(x, &e);
            return;
        }
        if (state == EXCHANGE_RUNNING && x->round + 1 < exchange_end_round(x)) {
            if (!round_is_finished(x))
                return;
            all_finished_round(x);
            continue;
        }
        if (x->waiting != 0)
            return;
        if (state == EXCHANGE_PREPARING)
            all_ready(x);
        else if (state == EXCHANGE_COMMITTING)
            all_committed(x);
        else if (!exchange_last_repetition(x))
            all_repeated(x);
        else
            all_done(x);
    }
}

/* --- words from peers --- */

/* Whether the child at this port has reported all rounds of the repetition but the last. */
static bool owes_last_round(const struct exchange *x, unsigned port)
{
    return x->state == EXCHANGE_RUNNING && is_child(x, port) &&
           x->finished_below[port] + 1 == exchange_end_round(x) &&
           x->admitted == exchange_end_round(x);
}

int wave_word(struct exchange *x, unsigned port, const Peer__Head *head, struct error *e)
{
    bool from_parent = x->tree.parent == (int)port;
    const char *what = "";

    switch (head->kind_case) {
    case PEER__HEAD__KIND_READY:
        if (x->state != EXCHANGE_PREPARING)
            break;
        if (child_part(x, port, e) != 0)
            return -1;
        if (head->ready->largest_block > x->largest_block)
            x->largest_block = head->ready->largest_block;
        exchange_advance(x);
        return 0;
    case PEER__HEAD__KIND_GO:
        if (!from_parent)
            break;
        if (x->state == EXCHANGE_READY && head->go->repetition == 0 && head->go->rounds > 0 &&
            head->go->rounds <= UINT64_MAX / x->repeat) {
            send_go(x, head->go->rounds);
            go(x, head->go->rounds);
        } else if (x->state == EXCHANGE_RUNNING && x->waiting == 1u << port &&
                   head->go->repetition == x->repetition + 1 && head->go->rounds == x->rounds) {
            go_on(x);
        } else {
            break;
        }
        exchange_advance(x);
        return 0;
    case PEER__HEAD__KIND_ROUND_DONE:
        if (x->state != EXCHANGE_RUNNING || !is_child(x, port) ||
            head->round_done->round != x->finished_below[port] ||
            head->round_done->round + 1 >= exchange_end_round(x) ||
            head->round_done->round >= x->admitted)
            break;
        x->finished_below[port]++;
        exchange_advance(x);
        return 0;
    case PEER__HEAD__KIND_ROUND_GO:
        if (x->state != EXCHANGE_RUNNING || !from_parent || head->round_go->round != x->admitted ||
            x->admitted >= exchange_end_round(x) || x->admitted >= x->round + x->window)
            break;
        send_round_go(x, x->admitted);
        admit(x);
        exchange_advance(x);
        return 0;
    case PEER__HEAD__KIND_REPEATED:
        if (!owes_last_round(x, port) || exchange_last_repetition(x) ||
            head->repeated->repetition != x->repetition)
            break;
        if (child_part(x, port, e) != 0)
            return -1;
        if (head->repeated->nanoseconds > x->slowest)
            x->slowest = head->repeated->nanoseconds;
        x->finished_below[port]++;
        exchange_advance(x);
        return 0;
    case PEER__HEAD__KIND_DONE:
        if (!owes_last_round(x, port) || !exchange_last_repetition(x))
            break;
        if (child_part(x, port, e) != 0 || report_add_child(x, head->done, e) != 0)
            return -1;
        x->finished_below[port]++;
        exchange_advance(x);
        return 0;
    case PEER__HEAD__KIND_COMMIT:
        if (x->state != EXCHANGE_DONE || !from_parent || x->to[0] == '\0')
            break;
        commit_here(x);
        exchange_advance(x);
        return 0;
    case PEER__HEAD__KIND_COMMITTED:
        if (x->state != EXCHANGE_COMMITTING)
            break;
        if (child_part(x, port, e) != 0)
            return -1;
        if (head->committed->failure[0] != '\0' && x->failure.code == ERROR_NONE) {
            x->failure.code = ERROR_IO;
            text_printable(x->failure.text, sizeof x->failure.text, head->committed->failure);
        }
        exchange_advance(x);
        return 0;
    default:
        what = "of an unknown kind, ";
        break;
    }
    return error_set(e, ERROR_PROTOCOL, "exchange %s is %s: a word %sthat has no place there",
                     x->id, exchange_state_name(x->state), what);
}
