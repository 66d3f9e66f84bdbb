/* Gives messages to their handlers, and drives attempts: handlers and events change only what an attempt knows, and
 * attempt_advance() then does what follows from that. */
#include "daemon/torusd/exchange/exchange.h"

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/abort.h"
#include "daemon/torusd/exchange/commit.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/link_costs.h"
#include "daemon/torusd/exchange/piece_repair.h"
#include "daemon/torusd/exchange/prepare.h"
#include "daemon/torusd/exchange/rounds.h"
#include "daemon/torusd/exchange/tree_messages.h"
#include "daemon/torusd/planning/schedule_store.h"

void attempt_advance(struct attempt *x)
{
    switch (x->state) {
    case EXCHANGE_OPENING:
    case EXCHANGE_PREPARING:
        prepare_advance(x);
        break;
    case EXCHANGE_RUNNING:
        piece_repair_advance(x);
        rounds_advance(x);
        break;
    case EXCHANGE_DONE:
        piece_repair_advance(x);
        break;
    case EXCHANGE_COMMITTING:
        commit_advance(x);
        break;
    default:
        break;
    }
}

/* --- messages: which may arrive in which state and from where, and its handler --- */

#define S(state) (1u << EXCHANGE_##state)

enum side { PARENT, CHILD, ANY, NEIGHBOUR /* in the tree or not */ };

/* Passes a message of the session to the engine. */
static int session_message(struct attempt *x, unsigned port, const struct peer_message *message,
                           struct error *e)
{
    const struct engine *engine = x->local.engine;

    if (engine->ops->message == NULL)
        return error_set(e, ERROR_PROTOCOL,
                         "message of a group about exchange %s, which is not a group", x->id.text);
    return engine->ops->message(x->local.engine, port, message, e);
}

/* take_name() calls the handler of one message with that member of the union. */
#define TAKES(name, handler)                                                                       \
    static int take_##name(struct attempt *x, unsigned port, const struct peer_message *message,   \
                           struct error *e)                                                        \
    {                                                                                              \
        return handler(x, port, &message->name, e);                                                \
    }
TAKES(sizes, sizes_heard)
TAKES(arrived, arrived_heard)
TAKES(layout, layout_heard)
TAKES(ready, ready_heard)
TAKES(go, go_heard)
TAKES(round_done, round_done_heard)
TAKES(round_go, round_go_heard)
TAKES(repeated, repeated_heard)
TAKES(done, done_heard)
TAKES(repair_query, repair_query_heard)
TAKES(repair_part, repair_part_heard)
TAKES(commit, commit_heard)
#undef TAKES

/* Messages about one attempt. */
static const struct {
    enum peer_kind kind;
    const char *name;
    uint32_t states;
    enum side side;
    int (*take)(struct attempt *x, unsigned port, const struct peer_message *message,
                struct error *e);
} messages[] = {
    {PEER_SIZES, "sizes", S(OPENING), CHILD, take_sizes},
    {PEER_ARRIVED, "arrived", S(OPENING) | S(OPENED), ANY, take_arrived},
    {PEER_LAYOUT, "layout", S(OPENED), PARENT, take_layout},
    {PEER_READY, "ready", S(PREPARING), CHILD, take_ready},
    {PEER_GO, "go", S(READY) | S(PAUSED), PARENT, take_go},
    {PEER_ROUND_DONE, "round done", S(RUNNING), CHILD, take_round_done},
    {PEER_ROUND_GO, "round go", S(RUNNING), PARENT, take_round_go},
    {PEER_REPEATED, "repeated", S(RUNNING), CHILD, take_repeated},
    {PEER_DONE, "done", S(RUNNING), CHILD, take_done},
    {PEER_REPAIR_QUERY, "repair query", S(RUNNING) | S(DONE), ANY, take_repair_query},
    {PEER_REPAIR_PART, "repair part", S(RUNNING) | S(DONE), ANY, take_repair_part},
    {PEER_COMMIT, "commit", S(DONE) | S(COMMITTING) | S(COMMITTED) | S(IN_DOUBT), PARENT,
     take_commit},
    {PEER_GROUP_CENSUS, "group census", S(RUNNING), ANY, session_message},
    {PEER_GROUP_ANSWER, "group answer", S(RUNNING), CHILD, session_message},
    {PEER_GROUP_REPORT, "group report", S(RUNNING), PARENT, session_message},
    {PEER_GROUP_COMPARE, "group compare", S(READY) | S(RUNNING), NEIGHBOUR, session_message},
};

/* take_name() calls the handler of one message with that member of the union. */
#define TAKES(name, whose, handler)                                                                \
    static int take_##name(struct exchanges *exchanges, unsigned port,                             \
                           const struct peer_message *message, struct error *e)                    \
    {                                                                                              \
        return handler(whose, port, &message->name, e);                                            \
    }
TAKES(prepare, exchanges, prepare_heard)
TAKES(nack, exchanges, nack_heard)
TAKES(abort, exchanges, abort_heard)
TAKES(confirm, exchanges, outcome_confirm_heard)
TAKES(outcome_query, exchanges, outcome_query_heard)
TAKES(outcome, exchanges, outcome_heard)
TAKES(calibration, exchanges, link_costs_heard)
TAKES(schedule_query, exchanges->schedules, schedules_query_heard)
TAKES(schedule_part, exchanges->schedules, schedules_part_heard)
#undef TAKES

/* Messages to this node, not about one attempt. */
static const struct {
    enum peer_kind kind;
    int (*take)(struct exchanges *exchanges, unsigned port, const struct peer_message *message,
                struct error *e);
} node_messages[] = {
    {PEER_PREPARE, take_prepare},
    {PEER_NACK, take_nack},
    {PEER_ABORT, take_abort},
    {PEER_CONFIRM, take_confirm},
    {PEER_OUTCOME_QUERY, take_outcome_query},
    {PEER_OUTCOME, take_outcome},
    {PEER_CALIBRATION, take_calibration},
    {PEER_SCHEDULE_QUERY, take_schedule_query},
    {PEER_SCHEDULE_PART, take_schedule_part},
};

static bool is_data(const struct peer_message *message)
{
    struct engine_data data;

    return engine_data(message, &data) || message->kind == PEER_CLEAR;
}

/* Whether data may arrive: from when this node is ready until it has finished the last round. A neighbour may
 * hear `go` before this node does, so data of the first rounds after that `go` is valid, too. */
static bool expects_data(const struct attempt *x, const struct peer_message *message)
{
    uint64_t finished, round, end = 0;
    struct engine_data data;
    bool running = state_of(x)->runs;

    if (x->local.engine == NULL || (!running && x->state != EXCHANGE_READY))
        return false;
    if (kind_of(x)->has_session)
        return true; /* a session counts calls, not rounds */
    finished = round = x->local.engine->rounds_finished;
    if (engine_data(message, &data))
        round += (data.round - finished) & ENGINE_ROUND_MASK;
    if (running)
        end = exchange_end_round(x);
    if (finished < end)
        return round < end;
    return (end == 0 || !exchange_last_repetition(x)) && round < end + x->local.window;
}

static int give_to_engine(struct attempt *x, unsigned port, const struct peer_message *message,
                          const struct extents *body, uint32_t body_length, struct error *e)
{
    if (!expects_data(x, message))
        return error_set(e, ERROR_PROTOCOL, "exchange %s is %s: unexpected data in this state",
                         x->id.text, exchange_state_name(x->state));
    if (message->kind == PEER_CLEAR) {
        if (engine_clear(x->local.engine, port, &message->clear, e) != 0)
            return error_wrap(e, "exchange %s", x->id.text);
        return 0;
    }
    if (engine_frame(x->local.engine, port, message, body, body_length, e) != 0)
        return error_wrap(e, "exchange %s", x->id.text);
    attempt_advance(x);
    return 0;
}

/* Handles a neighbour's message that does not fit. A neighbour in the tree is to blame, because this node and
 * the neighbour have told each other of the attempt. Another neighbour is not to blame: a relay between it and
 * the root may have told it something else. Its message fails the attempt, but does not cost the link. */
static int blame_neighbour(struct attempt *x, unsigned port, const struct error *why,
                           struct error *e)
{
    struct error differs = *why;

    if (x->tree.parent == (int)port || tree_messages_is_child(x, port)) {
        *e = *why;
        return -1;
    }
    if (attempt_is_root(x))
        (void)error_wrap(&differs, "node %u contradicts what node %u has told it",
                         torus_neighbour(torus_of(x), rank_of(x), port), rank_of(x));
    else
        (void)error_wrap(&differs, "node %u, which follows node %u, disagrees with node %u",
                         rank_of(x),
                         torus_neighbour(torus_of(x), rank_of(x), (unsigned)x->tree.parent),
                         torus_neighbour(torus_of(x), rank_of(x), port));
    (void)error_blame_node(&differs, rank_of(x));
    if (x->state != EXCHANGE_DONE) /* when DONE, this node needs nothing more */
        attempt_fail(x, &differs);
    return 0;
}

static int take_data(struct attempt *x, unsigned port, const struct peer_message *message,
                     const struct extents *body, uint32_t body_length, struct error *e)
{
    struct error why;

    if (give_to_engine(x, port, message, body, body_length, &why) == 0)
        return 0;
    return blame_neighbour(x, port, &why, e);
}

static int take_message(struct attempt *x, unsigned port, const struct peer_message *message,
                        struct error *e)
{
    struct error why;

    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        if (messages[i].kind != message->kind)
            continue;
        bool from_parent = x->tree.parent == (int)port;
        bool right_side = messages[i].side == NEIGHBOUR ||
                          (messages[i].side != CHILD && from_parent) ||
                          (messages[i].side != PARENT && tree_messages_is_child(x, port));
        if ((messages[i].states & 1u << x->state) != 0 && right_side) {
            if (messages[i].take(x, port, message, &why) != 0)
                return blame_neighbour(x, port, &why, e);
            attempt_advance(x);
            return 0;
        }
        if (state_of(x)->over)
            return 0; /* the frame was on its way when the attempt ended */
        (void)error_set(&why, ERROR_PROTOCOL, "exchange %s is %s: unexpected message \"%s\"%s",
                        x->id.text, exchange_state_name(x->state), messages[i].name,
                        right_side ? " in this state" : " from this neighbour");
        if (messages[i].side == NEIGHBOUR)
            return blame_neighbour(x, port, &why, e);
        *e = why;
        return -1;
    }
    return error_set(e, ERROR_PROTOCOL, "unknown kind of message (%d)", (int)message->kind);
}

static bool is_of_an_exchange(const struct peer_message *message)
{
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (messages[i].kind == message->kind)
            return true;
    return false;
}

/* Messages may still be on their way about an attempt that this node refused, or has ended and forgotten. They
 * are logged now and then only, because there may be many. */
static void ignore_unknown(struct exchanges *exchanges, unsigned port, uint32_t handle)
{
    uint64_t now = router_now(exchanges->set.router);
    char name[TORUS_PORT_NAME_SIZE];

    if (exchanges->unknown_logged[port] != 0 && now < exchanges->unknown_logged[port] + 1 * SECONDS)
        return;
    exchanges->unknown_logged[port] = now;
    log_info("port %s: ignoring a message about handle %u, which no exchange has here",
             torus_port_name(router_torus(exchanges->set.router),
                             router_rank(exchanges->set.router), port, name),
             handle);
}

int exchanges_frame(struct exchanges *exchanges, unsigned port, const struct peer_message *message,
                    const struct extents *body, uint32_t body_length, struct error *e)
{
    bool data = is_data(message);
    struct attempt *x;

    for (size_t i = 0; !data && i < sizeof node_messages / sizeof *node_messages; i++)
        if (node_messages[i].kind == message->kind)
            return node_messages[i].take(exchanges, port, message, e);
    if (!data && !is_of_an_exchange(message))
        return error_set(e, ERROR_PROTOCOL, "unknown kind of message (%d)", (int)message->kind);
    x = attempt_find(exchanges, peer_message_exchange(message));
    if (x == NULL) {
        ignore_unknown(exchanges, port, peer_message_exchange(message));
        return 0;
    }
    if ((x->fault.lost & 1u << port) != 0)
        return 0;
    if (!data)
        return take_message(x, port, message, e);
    if (state_of(x)->over)
        return 0;
    return take_data(x, port, message, body, body_length, e);
}

/* Returns the attempt that takes a frame with data from a port, or NULL. */
static struct attempt *find_taker(struct exchanges *exchanges, unsigned port,
                                  const struct peer_message *message)
{
    struct engine_data data;
    struct attempt *x = engine_data(message, &data) ? attempt_find(exchanges, data.exchange) : NULL;

    if (x == NULL || (x->fault.lost & 1u << port) != 0 || !expects_data(x, message))
        return NULL;
    return x;
}

int exchanges_passes(struct exchanges *exchanges, unsigned port, const struct peer_message *message)
{
    const struct attempt *x = find_taker(exchanges, port, message);

    return x != NULL ? engine_passes(x->local.engine, port, message) : -1;
}

void exchanges_places(struct exchanges *exchanges, unsigned port,
                      const struct peer_message *message, uint32_t body_length, uint32_t offset,
                      struct places *places)
{
    const struct attempt *x = find_taker(exchanges, port, message);

    places->count = 0;
    if (x != NULL && !state_of(x)->over)
        engine_places(x->local.engine, port, message, body_length, offset, places);
}
