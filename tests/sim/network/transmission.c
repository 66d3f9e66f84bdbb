#include "tests/sim/network/transmission.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_MOST (64u * 1024u) /* with `chop`; otherwise a packet, or with `burst` as many as */
#define PACED_PART 1024u /* TCP hands over at once when it is paced: a millisecond's worth, */
#define PACED_LEAST 2u   /* but no fewer than these */
#define RECEIVE_BUFFER (256u * 1024u) /* of the kernel, for a process that does not read */

static bool cannot_hear(const struct connection_end *end)
{
    return !end->node->sim->ending && (end_is_cut_off(end) || end->node->frozen);
}

void transmission_on_reset(struct sim *sim, void *object, uint64_t number)
{
    struct connection_end *end = object;

    if (cannot_hear(end)) {
        end->reset_held = true;
        return;
    }
    end->backlog = false;
    if (end->link != NULL && !end->vanished)
        end_lose_link(end, "connection reset");
}

static void receive(struct connection_end *to, struct piece *piece)
{
    struct sim *sim = to->node->sim;
    size_t done = 0;

    if (sim->damage > 0 && to->link != NULL) {
        uint64_t bit = chance_below(&sim->chance, piece->length * 8);
        piece->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        sim->damage--;
    }
    sim_enter(to->node);
    while (done < piece->length && to->link != NULL) {
        size_t room;
        uint8_t *at = link_room(to->link, &room);
        if (at == NULL) {
            sim_leave();
            end_lose_link(to, "no memory"); /* the same as daemon/torusd/net */
            return;
        }
        room = piece->length - done < room ? piece->length - done : room;
        memcpy(at, piece->bytes + done, room);
        done += room;
        link_received(to->link, room);
    }
    sim_leave();
}

/* `length` is 0 for bytes that arrived before and could not be received. */
static void on_arrived(struct sim *sim, void *object, uint64_t length)
{
    struct connection_end *to = object;
    struct piece *piece = to->first;

    to->untaken += length;
    if (!end_is_cut_off(to) && !to->vanished) {
        to->taken += to->untaken;
        to->untaken = 0;
    }
    if (cannot_hear(to)) {
        to->held++;
        return;
    }
    if (piece == NULL) /* dropped in the meantime */
        return;
    to->first = piece->next;
    if (to->first == NULL)
        to->last = NULL;
    to->coming -= piece->length;
    if (piece->length > 0)
        receive(to, piece);
    else if (to->link != NULL && !to->vanished)
        end_lose_link(to, "closed by the other side");
    free(piece);
    sim_settle(to->node);
    transmit(end_other(to)); /* if it waited for room */
}

static void send_piece(struct connection_end *from, struct piece *piece, uint64_t delay)
{
    struct connection_end *to = end_other(from);

    piece->next = NULL;
    if (to->last != NULL)
        to->last->next = piece;
    else
        to->first = piece;
    to->last = piece;
    to->coming += piece->length;
    from->sent += piece->length;
    sim_schedule(from->node->sim, delay, "arrived", on_arrived, to, piece->length);
}

void transmission_hear_again(struct connection_end *end)
{
    struct sim *sim = end->node->sim;

    if (cannot_hear(end))
        return;
    for (; end->held > 0; end->held--)
        sim_schedule(sim, 0, "arrived", on_arrived, end, 0);
    if (end->reset_held)
        sim_schedule(sim, 0, "reset", transmission_on_reset, end, 0);
    end->reset_held = false;
}

void transmission_take_bytes(struct connection_end *end, uint8_t *out, size_t length)
{
    if (end->farewell != NULL) {
        memcpy(out, end->farewell + end->farewell_done, length);
        end->farewell_done += length;
        end->queued -= length;
        return;
    }
    while (length > 0) {
        struct outgoing *frame = end->queue.first;
        size_t skip = end->first_done, n;
        const uint8_t *from = frame->head;
        size_t have = frame->head_length;
        for (uint32_t i = 0; skip >= have; i++) {
            skip -= have;
            from = frame->body.item[i].data;
            have = frame->body.item[i].length;
        }
        n = have - skip < length ? have - skip : length;
        memcpy(out, from + skip, n);
        out += n;
        length -= n;
        end->queued -= n;
        end->first_done += n;
        if (end->first_done == (size_t)frame->head_length + frame->body_length) {
            end->first_done = 0;
            outgoing_free(router_outgoing(core_router(end->node->core)), outgoing_pop(&end->queue));
        }
    }
}

static void on_sent(struct sim *sim, void *object, uint64_t number);

/* The time until a piece has left: its time on the wire; with `burst`, the time until the limiter's debt is small
 * enough, whatever the size of the piece. */
static uint64_t time_to_leave(struct connection_end *end, size_t length)
{
    const struct sim *sim = end->node->sim;
    uint64_t rate = end->connection->wire->rate[end_index(end)], now = sim->now;

    if (rate == 0)
        return 0;
    uint64_t begin = end->due > now ? end->due : now, ahead = sim->set.burst * SECONDS / rate;
    end->due = begin + length * SECONDS / rate;
    if (sim->set.burst == 0)
        return end->due - now;
    return begin > now + ahead ? begin - ahead - now : 0;
}

/* The number of bytes that leave in one piece. */
static size_t piece_length(struct connection_end *end)
{
    const struct sim *sim = end->node->sim;
    struct wire *w = end->connection->wire;
    size_t length = PACKET;

    if (sim->set.burst > 0) {
        uint64_t paced = w->rate[end_index(end)] / PACED_PART;
        length = paced > PIECE_MOST             ? PIECE_MOST
                 : paced > PACED_LEAST * PACKET ? paced
                                                : PACED_LEAST * PACKET;
    }
    if (sim->set.chop)
        length = 1 + chance_below(&w->chance, chance_below(&w->chance, 8) == 0 ? 16 : PIECE_MOST);
    if (w->state == SIM_WIRE_NARROW && length > end_next_frame(end))
        length = end_next_frame(end);
    return length < end->queued ? length : end->queued;
}

/* Whether the system at the other end has room for more bytes; notes since when it has none. */
static bool has_room(struct connection_end *end)
{
    const struct connection_end *to = end_other(end);
    const uint64_t now = end->node->sim->now;

    if (to->node->frozen && to->coming >= RECEIVE_BUFFER) {
        if (end->no_room_since == 0 && end->queued > 0)
            end->no_room_since = now;
        return false;
    }
    end->no_room = end_without_room(end);
    end->no_room_since = 0;
    return true;
}

void transmit(struct connection_end *end)
{
    struct sim *sim = end->node->sim;
    struct connection *c = end->connection;
    struct connection_end *to = end_other(end);

    if (end->sending || end->vanished || to->vanished || end_is_cut_off(to) ||
        end_is_too_large(end) || !has_room(end))
        return;
    if (end->queued == 0) {
        if (end->closing && end->link == NULL)
            send_piece(end, sim_alloc(sizeof(struct piece)), c->wire->latency);
        end->closing = false;
        return;
    }
    size_t length = piece_length(end);
    struct piece *piece = sim_alloc(sizeof *piece + length);
    piece->length = length;
    transmission_take_bytes(end, piece->bytes, length);
    uint64_t time = time_to_leave(end, length);
    end->sending = true;
    sim_schedule(sim, time, "sent", on_sent, end, 0);
    send_piece(end, piece, time + c->wire->latency);
}

static void on_sent(struct sim *sim, void *object, uint64_t number)
{
    struct connection_end *end = object;

    end->sending = false;
    if (end->link != NULL && !end->dirty) {
        end->dirty = true;
        end->next_dirty = end->node->dirty;
        end->node->dirty = end;
    }
    sim_settle(end->node);
    transmit(end);
}
