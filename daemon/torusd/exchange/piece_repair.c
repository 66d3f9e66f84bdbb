/* If a piece of a file arrives damaged (engine/piece_digest.h), this node asks its source for the piece again
 * while the exchange continues; no round ends here before the piece is repaired. The query and the answer go along
 * the tree, perhaps over other links than the block. A node repairs one part of at most REPAIR_PART bytes at a time,
 * so that repairs use little memory. The repaired piece must match the digest that its source sent with it, or the
 * digest of the bytes that arrived first: then the digest from the source was damaged. If this guess is wrong, the
 * sums over all nodes differ.
 *
 * A source that can no longer read the bytes sends an empty answer. If the answer is empty or does not arrive within
 * REPAIR_TIME, or after REPAIR_TRIES, the exchange is damaged, and its root retries (abort.c). Answers without
 * a query are ignored, because a lying node may have sent the query in this node's name. */
#include "daemon/torusd/exchange/piece_repair.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/abort.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/membership.h"
#include "proto/text.h"

#define REPAIR_PART (32u * 1024u)
#define REPAIR_TRIES 16u /* for the pieces of one attempt; more damage has a lasting cause */
/* For one part: reading it from a slow disk, and crossing the torus on slow links. */
#define REPAIR_TIME (15 * SECONDS)

static struct pending_repairs *repairs_of(struct attempt *x)
{
    if (x->local.repairs == NULL)
        x->local.repairs = calloc(1, sizeof *x->local.repairs);
    return x->local.repairs;
}

/* Returns the port towards a node in the exchange's tree, or -1. */
static int next_hop(const struct attempt *x, uint32_t node)
{
    int port = avoided_branch(x, node);

    return port < 0 ? x->tree.parent : port;
}

/* Sends a message on, but never back to the port it came from (-1: from this node). */
static void send_towards(struct attempt *x, uint32_t node, int from,
                         const struct peer_message *message)
{
    int port = next_hop(x, node);

    if (port >= 0 && port != from && (x->fault.lost & 1u << port) == 0)
        router_send(router_of(x), (unsigned)port, message);
}

/* --- at the node where a piece is damaged --- */

static void give_up(struct attempt *x)
{
    struct error e;

    piece_is_damaged(&x->local.engine->damaged[0].piece, x->local.sink, rank_of(x), &e);
    (void)error_wrap_node(&e, rank_of(x));
    attempt_damaged(x, &e);
}

uint64_t piece_repair_deadline(const struct attempt *x)
{
    const struct pending_repairs *m = x->local.repairs;

    if (!state_of(x)->moves || m == NULL || !m->asked || x->local.engine->damaged_count == 0)
        return ROUTER_NEVER;
    return m->asked_at + REPAIR_TIME;
}

/* The error also names the next hop, which may have held back the request or the answer. */
void piece_repair_late(struct attempt *x)
{
    const struct block_piece *piece = &x->local.engine->damaged[0].piece;
    int port = next_hop(x, piece->source);
    struct error e;

    piece_is_damaged(piece, x->local.sink, rank_of(x), &e);
    if (port >= 0)
        (void)error_wrap(&e, "no answer arrived through node %u within %d s",
                         torus_neighbour(torus_of(x), rank_of(x), (unsigned)port),
                         (int)(REPAIR_TIME / SECONDS));
    (void)error_wrap_node(&e, rank_of(x));
    attempt_damaged(x, &e);
}

static void no_memory(struct attempt *x)
{
    struct error e;

    (void)error_set(&e, ERROR_MEMORY, "node %u is out of memory for the repair of a piece",
                    rank_of(x));
    (void)error_blame_node(&e, rank_of(x));
    attempt_fail(x, &e);
}

/* Asks for the next part of the piece, unless the sink still writes bytes of the same block. */
static void ask_for_part(struct attempt *x)
{
    const struct block_piece *piece = &x->local.engine->damaged[0].piece;
    struct pending_repairs *m = repairs_of(x);
    struct error e;

    if (m == NULL) {
        no_memory(x);
        return;
    }
    if (m->asked || x->local.sink->ops->pending(x->local.sink) > 0)
        return;
    if (m->have == 0) {
        if (m->tries++ == REPAIR_TRIES) {
            give_up(x);
            return;
        }
        piece_is_damaged(piece, x->local.sink, rank_of(x), &e);
        log_warning("exchange %s: %s: asking for it again", x->id.text, e.text);
    }
    m->asked = true;
    m->asked_at = router_now(router_of(x));
    const uint32_t left = piece->length - m->have;
    const struct peer_message message = {
        .kind = PEER_REPAIR_QUERY,
        .repair_query = {.exchange = x->handle,
                         .source = piece->source,
                         .destination = rank_of(x),
                         .offset = piece->begin + m->have,
                         .length = left < REPAIR_PART ? left : REPAIR_PART}};
    send_towards(x, piece->source, -1, &message);
}

/* Checks the piece, all of which has been sent again. */
static void end_piece(struct attempt *x)
{
    struct engine *engine = x->local.engine;
    struct pending_repairs *m = x->local.repairs;

    m->have = 0;
    if (m->mark.digest != engine->damaged[0].digest &&
        m->mark.digest != engine->damaged[0].arrived_digest)
        return; /* ask again */
    m->repaired++;
    engine->delivered_digest += m->mark.digest;
    engine->damaged_count--;
    memmove(engine->damaged, engine->damaged + 1, engine->damaged_count * sizeof *engine->damaged);
    engine_wake(engine);
}

static void take_part(struct attempt *x, const struct peer_bytes *part)
{
    struct engine *engine = x->local.engine;
    struct pending_repairs *m = x->local.repairs;
    const struct block_piece piece = engine->damaged[0].piece;
    struct slab *slab = slab_without_pool(part->len, NULL, NULL);
    struct error e;

    if (slab == NULL) {
        no_memory(x);
        return;
    }
    const struct extent bytes = {slab, slab->data, (uint32_t)part->len};
    memcpy(slab->data, part->data, part->len);
    if (piece_pass(&m->states, &m->mark, &piece, m->have, &bytes) != 0) {
        no_memory(x);
    } else if (x->local.sink->ops->write(x->local.sink, piece.source, piece.begin + m->have, &bytes,
                                         &e) != 0) {
        (void)error_wrap_node(&e, rank_of(x));
        attempt_fail(x, &e);
    } else {
        m->have += bytes.length;
        if (m->have == piece.length)
            end_piece(x);
    }
    slab_unref(slab);
}

/* Whether the message answers the last request. */
static bool was_asked(const struct attempt *x, const struct peer_repair_part *message)
{
    const struct pending_repairs *m = x->local.repairs;

    if (!state_of(x)->moves || x->local.engine->damaged_count == 0 || m == NULL || !m->asked)
        return false;
    const struct block_piece *piece = &x->local.engine->damaged[0].piece;
    uint32_t left = piece->length - m->have;
    return message->source == piece->source && message->offset == piece->begin + m->have &&
           (message->part.len == 0 ||
            message->part.len == (left < REPAIR_PART ? left : REPAIR_PART));
}

/* --- at its source --- */

static bool has_block(const struct attempt *x, const struct peer_repair_query *message)
{
    const struct source *source = x->local.source;
    uint32_t block =
        x->spec.operation == OPERATION_EXCHANGE ? message->destination : message->source;

    if (source->ops->reread == NULL || !exchange_sends(x, rank_of(x)) ||
        avoided_is_left_out(x, message->destination))
        return false;
    uint64_t size = source->ops->size((struct source *)(uintptr_t)source, block);
    return message->offset < size && message->length <= size - message->offset;
}

static void note_query(struct attempt *x, const struct peer_repair_query *message)
{
    struct pending_repairs *m = repairs_of(x);

    if (m != NULL && m->query == NULL)
        m->query = calloc(torus_of(x)->nodes, sizeof *m->query);
    if (m == NULL || m->query == NULL) {
        no_memory(x);
        return;
    }
    for (uint32_t i = 0; i < m->queries; i++)
        if (m->query[i].destination == message->destination)
            return;
    m->query[m->queries++] =
        (struct repair_query){message->destination, message->length, message->offset};
}

static void answer_queries(struct attempt *x)
{
    struct pending_repairs *m = x->local.repairs;
    struct source *source = x->local.source;

    while (m->queries > 0) {
        const struct repair_query q = m->query[0];
        const uint8_t *bytes;
        struct error e;
        int result = source->ops->reread(
            source, x->spec.operation == OPERATION_EXCHANGE ? q.destination : rank_of(x), q.offset,
            q.length, &bytes, &e);
        if (result == 0)
            return;
        if (result < 0)
            log_warning("exchange %s: a piece cannot be sent again: %s", x->id.text, e.text);
        m->queries--;
        memmove(m->query, m->query + 1, m->queries * sizeof *m->query);
        struct peer_message message = {.kind = PEER_REPAIR_PART,
                                       .repair_part = {.exchange = x->handle,
                                                       .source = rank_of(x),
                                                       .destination = q.destination,
                                                       .offset = q.offset}};
        if (result > 0)
            message.repair_part.part = (struct peer_bytes){bytes, q.length};
        send_towards(x, q.destination, -1, &message);
    }
}

void piece_repair_advance(struct attempt *x)
{
    if (state_of(x)->moves && engine_failed(x->local.engine) == NULL &&
        x->local.engine->damaged_count > 0)
        ask_for_part(x);
    if (state_of(x)->repairs && x->local.repairs != NULL)
        answer_queries(x);
}

/* --- messages --- */

static int check_message(const struct attempt *x, const char *what, uint32_t source,
                         uint32_t destination, uint64_t length, struct error *e)
{
    uint32_t nodes = torus_of(x)->nodes;

    if (source < nodes && destination < nodes && source != destination && length <= REPAIR_PART)
        return 0;
    return error_set(e, ERROR_PROTOCOL,
                     "exchange %s: invalid \"%s\": %llu %s from node %u to node %u", x->id.text,
                     what, (unsigned long long)length, text_plural(length, "byte", "bytes"), source,
                     destination);
}

int repair_query_heard(struct attempt *x, unsigned port, const struct peer_repair_query *message,
                       struct error *e)
{
    const struct peer_message onward = {.kind = PEER_REPAIR_QUERY, .repair_query = *message};

    if (check_message(x, "repair query", message->source, message->destination, message->length,
                      e) != 0)
        return -1;
    if (message->source != rank_of(x))
        send_towards(x, message->source, (int)port, &onward);
    else if (message->length > 0 && has_block(x, message))
        note_query(x, message);
    return 0;
}

int repair_part_heard(struct attempt *x, unsigned port, const struct peer_repair_part *message,
                      struct error *e)
{
    const struct peer_message onward = {.kind = PEER_REPAIR_PART, .repair_part = *message};

    if (check_message(x, "repair part", message->source, message->destination, message->part.len,
                      e) != 0)
        return -1;
    if (message->destination != rank_of(x)) {
        send_towards(x, message->destination, (int)port, &onward);
        return 0;
    }
    if (!was_asked(x, message))
        return 0;
    x->local.repairs->asked = false;
    if (message->part.len == 0)
        give_up(x);
    else
        take_part(x, &message->part);
    return 0;
}
