/* Which message may come when, from where, and who takes it. */
#include <stddef.h>

#include "daemon/base/log.h"
#include "daemon/exchange/internal.h"

#define S(state) (1u << EXCHANGE_##state)

enum side { PARENT, CHILD, ANY, NEIGHBOUR /* of the tree or not */ };

/* The session's own. */
static int session_message(struct attempt *x, unsigned port, const Peer__Head *head,
                           struct error *e)
{
    const struct engine *engine = x->own.engine;

    if (engine->ops->message == NULL)
        return error_set(e, ERROR_PROTOCOL, "exchange %s is not a group", x->id);
    return engine->ops->message(x->own.engine, port, head, e);
}

/* Messages of one exchange. */
static const struct {
    Peer__Head__KindCase kind;
    const char *name;
    uint32_t states;
    enum side side;
    int (*take)(struct attempt *x, unsigned port, const Peer__Head *head, struct error *e);
} messages[] = {
    {PEER__HEAD__KIND_SIZED, "sized", S(OPENING), CHILD, sized_heard},
    {PEER__HEAD__KIND_ARRIVED, "arrived", S(OPENING) | S(OPENED), ANY, arrived_heard},
    {PEER__HEAD__KIND_LAYOUT, "layout", S(OPENED), PARENT, layout_heard},
    {PEER__HEAD__KIND_READY, "ready", S(PREPARING), CHILD, ready_heard},
    {PEER__HEAD__KIND_GO, "go", S(READY) | S(PAUSED), PARENT, go_heard},
    {PEER__HEAD__KIND_ROUND_DONE, "round done", S(RUNNING), CHILD, round_done_heard},
    {PEER__HEAD__KIND_ROUND_GO, "round go", S(RUNNING), PARENT, round_go_heard},
    {PEER__HEAD__KIND_REPEATED, "repeated", S(RUNNING), CHILD, repeated_heard},
    {PEER__HEAD__KIND_DONE, "done", S(RUNNING), CHILD, done_heard},
    {PEER__HEAD__KIND_AGAIN, "again", S(RUNNING) | S(DONE), ANY, again_heard},
    {PEER__HEAD__KIND_MENDED, "mended", S(RUNNING) | S(DONE), ANY, mended_heard},
    {PEER__HEAD__KIND_COMMIT, "commit", S(DONE) | S(COMMITTING) | S(COMMITTED) | S(IN_DOUBT),
     PARENT, commit_heard},
    {PEER__HEAD__KIND_GROUP_CENSUS, "group census", S(RUNNING), ANY, session_message},
    {PEER__HEAD__KIND_GROUP_ANSWER, "group answer", S(RUNNING), CHILD, session_message},
    {PEER__HEAD__KIND_GROUP_REPORT, "group report", S(RUNNING), PARENT, session_message},
    {PEER__HEAD__KIND_GROUP_COMPARE, "group compare", S(READY) | S(RUNNING), NEIGHBOUR,
     session_message},
};

/* In these states nothing is expected any more, but something may be on its way. */
#define LATE (S(FAILING) | S(FINISHED) | S(COMMITTED) | S(WITHDRAWN) | S(FAILED) | S(IN_DOUBT))

static int query_heard(struct exchanges *all, unsigned port, const Peer__Head *head,
                       struct error *e)
{
    return schedules_query_heard(all->schedules, port, head->schedule_query, e);
}

static int part_heard(struct exchanges *all, unsigned port, const Peer__Head *head, struct error *e)
{
    return schedules_part_heard(all->schedules, port, head->schedule_part, e);
}

/* Messages for this node. */
static const struct {
    Peer__Head__KindCase kind;
    int (*take)(struct exchanges *all, unsigned port, const Peer__Head *head, struct error *e);
} node_messages[] = {
    {PEER__HEAD__KIND_PREPARE, prepare_heard},
    {PEER__HEAD__KIND_OBJECTION, objection_heard},
    {PEER__HEAD__KIND_VERDICT, verdict_heard},
    {PEER__HEAD__KIND_CONFIRM, confirm_heard},
    {PEER__HEAD__KIND_OUTCOME_QUERY, doubt_query_heard},
    {PEER__HEAD__KIND_OUTCOME, doubt_outcome_heard},
    {PEER__HEAD__KIND_SCHEDULE_QUERY, query_heard},
    {PEER__HEAD__KIND_SCHEDULE_PART, part_heard},
};

/* All messages of an exchange begin with its handle. */
#define HANDLE_FIRST(type)                                                                         \
    _Static_assert(offsetof(type, exchange) == offsetof(Peer__Ready, exchange), "handle first")
HANDLE_FIRST(Peer__SteppedData);
HANDLE_FIRST(Peer__StreamedData);
HANDLE_FIRST(Peer__Clear);
HANDLE_FIRST(Peer__Sized);
HANDLE_FIRST(Peer__Arrived);
HANDLE_FIRST(Peer__Layout);
HANDLE_FIRST(Peer__Go);
HANDLE_FIRST(Peer__RoundDone);
HANDLE_FIRST(Peer__RoundGo);
HANDLE_FIRST(Peer__Repeated);
HANDLE_FIRST(Peer__Done);
HANDLE_FIRST(Peer__Again);
HANDLE_FIRST(Peer__Mended);
HANDLE_FIRST(Peer__Commit);
HANDLE_FIRST(Peer__GroupCensus);
HANDLE_FIRST(Peer__GroupCompare);
HANDLE_FIRST(Peer__GroupAnswer);
HANDLE_FIRST(Peer__GroupReport);

static uint32_t handle_of(const Peer__Head *head)
{
    return head->ready->exchange; /* the oneof's pointers share their place */
}

static bool is_data(const Peer__Head *head)
{
    struct engine_data data;

    return engine_data(head, &data) || head->kind_case == PEER__HEAD__KIND_CLEAR;
}

/* From when this node is ready until it has finished the last round. A neighbour may hear of a `go`
 * before it does: what belongs to the first rounds after that one has its place, too. */
static bool expects_data(const struct attempt *x, const Peer__Head *head)
{
    uint64_t finished, round, end = 0;
    struct engine_data data;
    bool running = x->state == EXCHANGE_RUNNING || x->state == EXCHANGE_PAUSED;

    if (x->own.engine == NULL || (!running && x->state != EXCHANGE_READY))
        return false;
    if (x->spec.operation == OPERATION_GROUP)
        return true; /* it counts calls */
    finished = round = x->own.engine->rounds_finished;
    if (engine_data(head, &data))
        round += (data.round - finished) & ENGINE_ROUND_MASK;
    if (running)
        end = exchange_end_round(x);
    if (finished < end)
        return round < end;
    return (end == 0 || !exchange_last_repetition(x)) && round < end + x->own.window;
}

static int give_to_engine(struct attempt *x, unsigned port, const Peer__Head *head,
                          const struct extents *body, uint32_t body_length, struct error *e)
{
    if (!expects_data(x, head))
        return error_set(e, ERROR_PROTOCOL, "exchange %s is %s: unexpected data in this state",
                         x->id, exchange_state_name(x->state));
    if (head->kind_case == PEER__HEAD__KIND_CLEAR) {
        if (engine_clear(x->own.engine, port, head->clear, e) != 0)
            return error_wrap(e, "exchange %s", x->id);
        return 0;
    }
    if (engine_frame(x->own.engine, port, head, body, body_length, e) != 0)
        return error_wrap(e, "exchange %s", x->id);
    attempt_advance(x);
    return 0;
}

/* What a neighbour has said does not fit. Those in the tree know the exchange from each other, and are to
 * blame. Others do not: a relay between them and the root may have told them another one; that costs the
 * exchange, not the link. */
static int blame(struct attempt *x, unsigned port, const struct error *why, struct error *e)
{
    struct error differs = *why;

    if (x->tree.parent == (int)port || wave_is_child(x, port)) {
        *e = *why;
        return -1;
    }
    if (attempt_is_root(x))
        (void)error_wrap(&differs, "node %u does not do as node %u has told it",
                         torus_neighbour(torus_of(x), rank_of(x), port), rank_of(x));
    else
        (void)error_wrap(&differs, "node %u, which was told by node %u, disagrees with node %u",
                         rank_of(x),
                         torus_neighbour(torus_of(x), rank_of(x), (unsigned)x->tree.parent),
                         torus_neighbour(torus_of(x), rank_of(x), port));
    if (x->state != EXCHANGE_DONE) /* else this node needs nothing more */
        attempt_fail(x, &differs);
    return 0;
}

static int take_data(struct attempt *x, unsigned port, const Peer__Head *head,
                     const struct extents *body, uint32_t body_length, struct error *e)
{
    struct error why;

    if (give_to_engine(x, port, head, body, body_length, &why) == 0)
        return 0;
    return blame(x, port, &why, e);
}

static int take_message(struct attempt *x, unsigned port, const Peer__Head *head, struct error *e)
{
    struct error why;

    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        if (messages[i].kind != head->kind_case)
            continue;
        bool from_parent = x->tree.parent == (int)port;
        bool right_side = messages[i].side == NEIGHBOUR ||
                          (messages[i].side != CHILD && from_parent) ||
                          (messages[i].side != PARENT && wave_is_child(x, port));
        if ((messages[i].states & 1u << x->state) != 0 && right_side) {
            if (messages[i].take(x, port, head, &why) != 0)
                return blame(x, port, &why, e);
            attempt_advance(x);
            return 0;
        }
        if ((LATE & 1u << x->state) != 0)
            return 0;
        (void)error_set(&why, ERROR_PROTOCOL, "exchange %s is %s: unexpected message \"%s\"%s",
                        x->id, exchange_state_name(x->state), messages[i].name,
                        right_side ? " in this state" : " from this side");
        if (messages[i].side == NEIGHBOUR)
            return blame(x, port, &why, e);
        *e = why;
        return -1;
    }
    return error_set(e, ERROR_PROTOCOL, "unknown kind of message (%d)", (int)head->kind_case);
}

static bool is_of_an_exchange(const Peer__Head *head)
{
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (messages[i].kind == head->kind_case)
            return true;
    return false;
}

/* Of an exchange that was refused here, or that has ended and been forgotten, messages may still be
 * on their way, however many: they cost a line in the log now and then. */
static void ignore_unknown(struct exchanges *all, unsigned port, uint32_t handle)
{
    uint64_t now = router_now(all->set.router);
    char name[TORUS_PORT_NAME_SIZE];

    if (all->unknown_logged[port] != 0 && now < all->unknown_logged[port] + 1 * SECONDS)
        return;
    all->unknown_logged[port] = now;
    log_info("port %s: ignoring a message of exchange %u, which is unknown here",
             torus_port_name(port, name), handle);
}

int exchanges_frame(struct exchanges *all, unsigned port, const Peer__Head *head,
                    const struct extents *body, uint32_t body_length, struct error *e)
{
    bool data = is_data(head);
    struct attempt *x;

    if (head->kind_case == PEER__HEAD__KIND_CALIBRATION)
        return calibration_heard(all, port, head->calibration, e);
    for (size_t i = 0; !data && i < sizeof node_messages / sizeof *node_messages; i++)
        if (node_messages[i].kind == head->kind_case)
            return node_messages[i].take(all, port, head, e);
    if (!data && !is_of_an_exchange(head))
        return error_set(e, ERROR_PROTOCOL, "unknown kind of message (%d)", (int)head->kind_case);
    x = attempt_find(all, handle_of(head));
    if (x == NULL) {
        ignore_unknown(all, port, handle_of(head));
        return 0;
    }
    if ((x->fault.lost & 1u << port) != 0)
        return 0;
    if (!data)
        return take_message(x, port, head, e);
    if ((LATE & 1u << x->state) != 0)
        return 0;
    return take_data(x, port, head, body, body_length, e);
}
