#include "daemon/torusd/router/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/router/filler.h"
#include "daemon/torusd/router/health.h"
#include "daemon/torusd/router/internal.h"
#include "proto/text.h"

/* Frees the handshake state of a link, and overwrites its keys. To be called when the link has proved
 * itself, or is freed. */
static void link_forget_stranger(struct link *link)
{
    if (link->stranger == NULL)
        return;
    handshake_forget(&link->stranger->handshake);
    free(link->stranger);
    link->stranger = NULL;
}

static void link_free(struct link *link)
{
    link_forget_stranger(link);
    decoder_free(&link->decoder);
    outgoing_clear(&link->router->outgoing, &link->handshake_frames);
    if (link->slab != NULL)
        slab_unref(link->slab);
    free(link);
}

void link_give_up(struct link *link, const struct error *why, bool tell_peer)
{
    struct router *r = link->router;
    const struct peer_message refusal = {.kind = PEER_REFUSAL, .refusal = {why->text}};
    struct outgoing *last = NULL;

    if (link->decoding) {
        if (!link->to_close) {
            link->to_close = true;
            link->close_reason = *why;
        }
        return;
    }
    if (tell_peer)
        last = outgoing_make(&r->outgoing, &refusal);
    if (last != NULL)
        last->plain = link->stranger != NULL;
    r->io.close(r->io.context, link->connection, last);
    port_link_gone(link, why->text);
    link_free(link);
}

void link_closed(struct link *link, const char *reason)
{
    port_link_gone(link, reason);
    link_free(link);
}

/* --- admission --- */

#define REPORT_MEMORY UINT64_C(4096) /* most bytes of a node's report in memory */
#define REPORTS_MOST (UINT64_C(64) << 20)
#define PORT_CANDIDATES 32u /* most connections of a port that have not proved themselves */

static void send_to_stranger(void *context, const struct peer_message *message)
{
    struct link *link = context;
    struct router *r = link->router;
    struct outgoing *frame = outgoing_make(&r->outgoing, message);

    if (frame == NULL)
        return; /* nothing is sent: the peer closes the connection after its time limit, and this node dials
                 * again */
    frame->plain = true;
    outgoing_push(&link->handshake_frames, frame);
    r->io.wake(r->io.context, link->connection);
}

static struct handshake_config handshake_config_of(struct link *link)
{
    struct router *r = link->router;

    return (struct handshake_config){.torus = r->torus,
                                     .secrets = &r->secrets,
                                     .address = link->address,
                                     .rank = r->rank,
                                     .neighbour = r->port[link->port].neighbour,
                                     .port = link->port,
                                     .boot = r->boot,
                                     .minor = router_minor(r),
                                     .random = r->io.random,
                                     .random_context = r->io.context,
                                     .say = send_to_stranger,
                                     .say_context = link};
}

/* A flood of strangers must not keep the neighbour out. The oldest connection that has sent nothing valid is
 * closed first; if there is none, a random one is closed, so that no stranger can choose which one.
 * Connections that this node dialled stay. */
static void make_room(struct router *r, unsigned i)
{
    struct error crowded;
    struct link *silent = NULL, *other = NULL;
    unsigned count = 0, others = 0;
    uint64_t random;

    for (struct link *link = r->port[i].candidates; link != NULL; link = link->next, count++) {
        if (link->dialled || link->stranger == NULL)
            continue;
        if (link->stranger->handshake.state == HANDSHAKE_HELLO) {
            silent = link;
        } else {
            r->io.random(r->io.context, &random, sizeof random);
            if (random % ++others == 0)
                other = link;
        }
    }
    if (count < PORT_CANDIDATES)
        return;
    (void)error_set(&crowded, ERROR_LINK,
                    "too many connections at the same time: at most %u are possible",
                    PORT_CANDIDATES);
    link_give_up(silent != NULL ? silent : other, &crowded, false);
}

struct link *router_connected(struct router *r, unsigned port, bool dialled, void *connection,
                              const char *address)
{
    struct link *link;

    if (dialled)
        r->port[port].dialling = false;
    if (r->stopping)
        return NULL;
    make_room(r, port);
    link = calloc(1, sizeof *link);
    if (link != NULL)
        link->stranger = calloc(1, sizeof *link->stranger);
    if (link == NULL || link->stranger == NULL) {
        free(link);
        return NULL;
    }
    link->router = r;
    link->connection = connection;
    link->port = port;
    link->dialled = dialled;
    (void)strncpy(link->address, address, sizeof link->address - 1);
    r->now = router_now(r);
    link->opened = link->last_frame = link->taken_at = r->now;
    link->next = r->port[port].candidates;
    r->port[port].candidates = link;
    const struct handshake_config place = handshake_config_of(link);
    handshake_begin(&link->stranger->handshake, &place, dialled);
    return link;
}

/* The neighbour has given up all its connections except the last one. */
static void replace_others(struct link *link)
{
    const struct error replaced = {.code = ERROR_LINK,
                                   .text = "replaced by a new connection of its node"};
    struct port *port = &link->router->port[link->port];
    struct link *following;

    if (port->link != NULL)
        link_give_up(port->link, &replaced, false);
    for (struct link *other = port->candidates; other != NULL; other = following) {
        following = other->next;
        if (other != link && other->stranger == NULL)
            link_give_up(other, &replaced, false);
    }
}

/* Accepts a connection that has proved that it belongs to the neighbour. */
static int accept_neighbour(struct link *link, struct error *e)
{
    struct router *r = link->router;
    const struct handshake *h = &link->stranger->handshake;

    if (r->secrets.encrypt) {
        const struct handshake_config place = handshake_config_of(link);
        struct link_keys keys;
        if (r->io.encrypt == NULL)
            return error_set(e, ERROR_LINK, "this torusd cannot encrypt links");
        if (handshake_keys(h, &place, &keys, e) != 0)
            return -1;
        link->encrypted = r->io.encrypt(r->io.context, link->connection, &keys) == 0;
        handshake_forget_keys(&keys);
        if (!link->encrypted)
            return error_set(e, ERROR_MEMORY, "out of memory to encrypt a link");
    }
    link->has_key = h->key != NULL;
    if (link->has_key)
        memcpy(link->key, h->key->id, KEY_ID_SIZE);
    link->minor = h->theirs.minor;
    decoder_init(&link->decoder, FRAME_MAX_HEAD, FRAME_MAX_BODY);
    link->decoder.skips_unknown = link->minor > router_minor(r);
    uint64_t reports = r->torus->nodes * REPORT_MEMORY;
    link->decoder.max_more += (uint32_t)(reports < REPORTS_MOST ? reports : REPORTS_MOST);
    if (r->io.proved != NULL)
        r->io.proved(r->io.context, link->connection);
    replace_others(link);
    link_forget_stranger(link);
    return probe_begin(link, e);
}

/* Returns where to put the next bytes of a connection that has not proved itself, and in *size how many fit:
 * at most the rest of the message that is arriving. */
static uint8_t *admission_room(struct link *link, size_t *size)
{
    struct stranger *s = link->stranger;
    uint32_t whole = FRAME_PREFIX_SIZE + (s->have < FRAME_PREFIX_SIZE ? 0 : s->prefix.head);

    *size = whole - s->have;
    return s->bytes + s->have;
}

/* `length` bytes have been put into admission_room(). Returns 0, or -1 with *e: the connection is refused.
 * After a success the connection may have proved itself. */
static int admission_received(struct link *link, size_t length, struct error *e)
{
    const struct router *r = link->router;
    struct stranger *s = link->stranger;
    const struct handshake_config place = handshake_config_of(link);
    struct peer_message message;
    int result;

    s->have += (uint32_t)length;
    if (s->have < FRAME_PREFIX_SIZE)
        return 0;
    if (s->have == FRAME_PREFIX_SIZE)
        return frame_prefix_read(s->bytes, FRAME_MAX_STRANGER_HEAD, 0, &s->prefix, e);
    if (s->have < FRAME_PREFIX_SIZE + s->prefix.head)
        return 0;
    s->have = 0;
    if (peer_message_unpack(s->bytes + FRAME_PREFIX_SIZE, s->prefix.head, &message, e) != 0)
        return -1;
    result =
        r->port[link->port].flapping.held
            ? error_set(e, ERROR_REFUSED,
                        "node %u does not use this link until it has been quiet, because it flaps",
                        r->rank)
            : handshake_heard(&s->handshake, &place, &message, e);
    peer_message_free(&message);
    if (result != 0 && s->handshake.elsewhere)
        faults_sighted(link->router, link->port,
                       &(struct sighting){s->handshake.found_rank, s->handshake.found_port,
                                          s->handshake.theirs.boot});
    if (result == 0 && s->handshake.state == HANDSHAKE_DONE)
        result = accept_neighbour(link, e);
    return result;
}

/* --- frames --- */

#define HEARTBEAT_MOST_MS 5000u

static void take_heartbeat(struct link *link, const struct peer_heartbeat *beat)
{
    if (beat->interval_ms > 0)
        link->interval =
            (beat->interval_ms < HEARTBEAT_MOST_MS ? beat->interval_ms : HEARTBEAT_MOST_MS) *
            MILLISECONDS;
    link_clock_take(&link->clock, beat, router_now(link->router));
}

static int on_probe(struct link *link, const struct peer_message *message, struct error *e)
{
    int result = probe_heard(link, message, e);

    if (result > 0)
        port_link_up(link);
    return result < 0 ? -1 : 0;
}

/* Whether bytes at `offset` of a body still belong where they have been put. */
static bool are_in_place(const struct link *link, const struct peer_message *message,
                         uint32_t body_length, uint32_t offset, const struct extent *bytes)
{
    const struct router_handler *handler = &link->router->handler;
    uint32_t done = 0;

    while (done < bytes->length) {
        const uint32_t before = done;
        struct places places;
        handler->places(handler->context, link->port, message, body_length, offset + done, &places);
        for (unsigned i = 0; i < places.count && done < bytes->length; i++) {
            if (places.run[i].data != bytes->data + done)
                return false;
            done += places.run[i].length;
        }
        if (done == before)
            return false;
    }
    return true;
}

/* Whether the bytes of a body that are not in memory of this node still go where they were moved while the body arrived: its
 * exchange or its call may have ended. Sets link->places. */
static bool goes_on(struct link *link, const struct peer_message *message,
                    const struct extents *body, uint32_t body_length)
{
    const struct router_handler *handler = &link->router->handler;
    uint32_t offset = 0;

    link->places = false;
    for (uint32_t i = 0; i < body->count; offset += body->item[i++].length) {
        const struct extent *bytes = &body->item[i];
        if (bytes->slab->where == SLAB_IN_PIPE &&
            handler->passes(handler->context, link->port, message) < 0)
            return false;
        if (bytes->slab->where != SLAB_IN_PLACE)
            continue;
        link->places = true;
        if (!are_in_place(link, message, body_length, offset, bytes))
            return false;
    }
    return true;
}

static int on_frame(void *context, const struct peer_message *message, const struct extents *body,
                    uint32_t body_length, struct error *e)
{
    struct link *link = context;
    struct router *r = link->router;
    int result = 0;

    link->last_frame = r->now;
    if (message->kind == PEER_REFUSAL) {
        char reason[256];
        return error_set(e, ERROR_LINK, "refused by %s: %s", link->address,
                         text_printable(reason, sizeof reason, message->refusal.reason));
    }
    if (!link->up)
        return on_probe(link, message, e);
    if (!goes_on(link, message, body, body_length))
        return 0;
    switch (message->kind) {
    case PEER_HELLO:
    case PEER_PROOF:
    case PEER_PROBE:
    case PEER_PROBE_ANSWERED:
        return error_set(e, ERROR_PROTOCOL, "%s said hello twice", link->address);
    default:
        break;
    }
    if (message->kind == PEER_LINK_STATE)
        result = flood_heard(r, link->port, &message->link_state, e);
    else if (message->kind == PEER_LINK_FAULT)
        result = faults_heard(r, link->port, &message->link_fault, e);
    else if (message->kind == PEER_HEARTBEAT)
        take_heartbeat(link, &message->heartbeat);
    else
        result = r->handler.frame(r->handler.context, link->port, message, body, body_length, e);
    if (result == 0 && link->to_close) {
        *e = link->close_reason;
        return -1;
    }
    return result;
}

/* The longest run of a body that is read together with a head in front of it, which is short. */
#define HEAD_ROOM 4096u

uint8_t *link_room(struct link *link, size_t *size)
{
    const struct decoder *d = &link->decoder;

    if (link->stranger != NULL)
        return admission_room(link, size);
    if (link->slab != NULL && link->slab->references == 1)
        link->slab_used = link->slab->copied_out = 0; /* no references are left: start over */
    if (link->slab != NULL && SLAB_SIZE - link->slab_used < LINK_ROOM_LEAST) {
        slab_unref(link->slab);
        link->slab = NULL;
    }
    if (link->slab == NULL) {
        link->slab = slab_get(link->router->pool);
        link->slab_used = 0;
        if (link->slab == NULL)
            return NULL;
    }
    *size = SLAB_SIZE - link->slab_used;
    /* Behind a long body there may be another one, which may pass, and behind one that was put into place another one
     * that has a place: only its head is read. */
    if ((d->prefix.body > FRAME_SHORT_BODY || link->places) && !link->encrypted &&
        *size > decoder_left(d) + HEAD_ROOM)
        *size = decoder_left(d) + HEAD_ROOM;
    return link->slab->data + link->slab_used;
}

uint32_t link_passing(struct link *link)
{
    struct router *r = link->router;
    struct peer_message message;
    struct error e;
    uint32_t left;
    const struct Peer__Head *head = decoder_awaits_body(&link->decoder, &left);
    int out = -1;

    if (head == NULL || !link->up || link->encrypted || r->handler.passes == NULL)
        return 0;
    if (peer_message_read(head, &message, &e) == 0) {
        out = r->handler.passes(r->handler.context, link->port, &message);
        peer_message_free(&message);
    }
    return out >= 0 && r->port[out].link != NULL && !r->port[out].link->encrypted ? left : 0;
}

#define PLACED_LEAST (16u * 1024u) /* bytes: for less, system calls cost more than copies */

/* Returns how many of the next bytes of the connection have a place, and leaves room for one place more. */
static uint32_t find_places(struct link *link, struct places *places)
{
    struct router *r = link->router;
    struct peer_message message;
    struct error e;
    uint32_t left, bytes = 0;
    const struct Peer__Head *head = decoder_awaits_body(&link->decoder, &left);

    places->count = 0;
    if (left < PLACED_LEAST || !link->up || link->encrypted || r->handler.places == NULL)
        return 0;
    const uint32_t body = link->decoder.prefix.body;
    if (peer_message_read(head, &message, &e) == 0) {
        r->handler.places(r->handler.context, link->port, &message, body, body - left, places);
        peer_message_free(&message);
    }
    if (places->count == PLACES_MOST)
        places->count--;
    for (unsigned i = 0; i < places->count; i++)
        bytes += places->run[i].length;
    return bytes;
}

bool link_places(struct link *link, struct places *places)
{
    const uint32_t bytes = find_places(link, places);
    size_t size;

    if (bytes < PLACED_LEAST)
        return false;
    uint8_t *room = link_room(link, &size);
    const uint32_t behind = decoder_left(&link->decoder) - bytes + HEAD_ROOM;
    return room != NULL && places_add(places, room, size < behind ? (uint32_t)size : behind);
}

/* Gives received bytes to the decoder. Returns 0, or -1 with *e: the link is to be given up. */
static int decode(struct link *link, struct slab *slab, const uint8_t *data, size_t length,
                  struct error *e)
{
    link->router->reading = link;
    const int result = decoder_feed(&link->decoder, slab, data, length, on_frame, link, e);
    flood_tell_handler(link->router);
    link->router->reading = NULL;
    return result;
}

/* Bytes have been received; `data` is NULL if they are in the room of a stranger. Returns whether the link is still there.
 */
static bool take_received(struct link *link, struct slab *slab, const uint8_t *data, size_t length)
{
    struct error e = {0};
    int result;

    link->rx_bytes += length;
    link->heard = link->quiet.heard = true;
    link->router->now = router_now(link->router);
    link->decoding = true;
    if (data == NULL)
        result = admission_received(link, length, &e);
    else
        result = decode(link, slab, data, length, &e);
    if (result == 0 && link->to_close) {
        e = link->close_reason;
        result = -1;
    }
    link->decoding = false;
    if (result != 0)
        link_give_up(link, &e, e.code == ERROR_PROTOCOL || e.code == ERROR_REFUSED);
    return result == 0;
}

void link_received(struct link *link, size_t length)
{
    const uint8_t *data = link->stranger == NULL ? link->slab->data + link->slab_used : NULL;

    if (data != NULL)
        link->slab_used += (uint32_t)length;
    (void)take_received(link, link->slab, data, length);
}

void link_passed(struct link *link, const struct extent *bytes)
{
    (void)take_received(link, bytes->slab, bytes->data, bytes->length);
}

void link_placed(struct link *link, const struct places *places, size_t length)
{
    struct router *r = link->router;

    for (unsigned i = 0; i + 1 < places->count && length > 0; i++) {
        const size_t put = length < places->run[i].length ? length : places->run[i].length;
        link->placed_bytes += put;
        length -= put;
        if (!take_received(link, r->in_place, places->run[i].data, put))
            return;
    }
    if (length > 0)
        link_received(link, length);
}

bool link_carries(const struct link *link)
{
    return link->up;
}

uint32_t link_left(const struct link *link)
{
    return link->stranger == NULL ? decoder_left(&link->decoder) : 0;
}

bool link_held(const struct link *link)
{
    return link->held_by != 0;
}

static struct outgoing *next_of_exchanges(struct link *link)
{
    struct router *r = link->router;
    struct outgoing *frame = r->handler.next(r->handler.context, link->port);

    if (frame != NULL)
        filler_give_way(r, link->port);
    return frame;
}

struct outgoing *link_next(struct link *link)
{
    struct router *r = link->router;
    struct port *port = &r->port[link->port];
    struct outgoing *frame = outgoing_pop(&link->handshake_frames);

    if (frame == NULL && link->up) {
        frame = outgoing_pop(&port->control);
        if (port->holds && port->control.bytes <= ROUTER_QUEUE_MOST / 2)
            send_release(r, link->port);
        if (frame == NULL)
            frame = outgoing_pop(&port->relay);
        if (frame == NULL)
            frame = next_of_exchanges(link);
        if (frame == NULL)
            frame = filler_next(link);
    }
    if (frame != NULL) {
        link->taken_at = r->now;
        link->tx_bytes += frame->head_length + frame->body_length;
    }
    return frame;
}

/* --- the carrier --- */

static void carrier_gone(struct router *r, unsigned i, const char *fault)
{
    struct port *port = &r->port[i];
    const bool held = port->flapping.held;
    struct error why;

    if (!port->no_carrier)
        flapping_lost(r, i, 0);
    faults_clear(r, i); /* the next cable that is plugged in may be another one */
    (void)error_set(&why, ERROR_LINK, "%s", fault);
    if (port->link != NULL)
        link_give_up(port->link, &why, false);
    port->no_carrier = false; /* so that port_note() also reports a new fault, */
    if (!held)                /* but not every loss of a link that flaps */
        port_note(r, i, fault);
    (void)snprintf(port->reason, sizeof port->reason, "%s", fault);
    port->no_carrier = true;
    while (port->candidates != NULL)
        link_give_up(port->candidates, &why, false);
}

static void carrier_back(struct router *r, unsigned i)
{
    struct port *port = &r->port[i];
    char name[TORUS_PORT_NAME_SIZE];

    port->no_carrier = false;
    (void)snprintf(port->reason, sizeof port->reason, "the carrier is back");
    if (!port->flapping.held)
        log_info("port %s to node %u: %s", torus_port_name(r->torus, r->rank, i, name),
                 port->neighbour, port->reason);
    port->flapping.until = router_now(r) + port->flapping.hold;
    port->backoff = 0;
    /* A dial that is under way would wait until TCP retransmits a lost packet. */
    if (port_dials(r, i) && port->candidates == NULL && !port->flapping.held)
        port_dial(r, i);
}

void router_carrier(struct router *r, unsigned i, const char *fault)
{
    struct port *port = &r->port[i];

    r->now = router_now(r);
    if (port->neighbour == TORUS_NO_NODE || r->stopping)
        return;
    if (fault != NULL)
        carrier_gone(r, i, fault);
    else if (port->no_carrier)
        carrier_back(r, i);
}
