/* One connection: its handshake, frames in, frames out. Nothing is believed of it before the handshake
 * has shown that it is that of the neighbour that the cabling promises. */
#include "daemon/router/record/internal.h"

#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

#define REPORT_MEMORY UINT64_C(4096) /* that the report of a node takes as a message, at most */
#define REPORTS_MOST (UINT64_C(64) << 20)

static void say(void *context, const Peer__Head *head)
{
    struct link *link = context;
    struct router *r = link->router;
    struct outgoing *frame = outgoing_new(&r->outgoing);

    if (frame == NULL)
        return; /* not said: the peer closes after its time, and we try again */
    if (outgoing_set_head(frame, head) != 0) {
        outgoing_free(&r->outgoing, frame);
        return;
    }
    frame->plain = true;
    outgoing_push(&link->own, frame);
    r->io.wake(r->io.context, link->connection);
}

static struct handshake_place place_of(struct link *link)
{
    struct router *r = link->router;

    return (struct handshake_place){.torus = r->torus,
                                    .secrets = &r->secrets,
                                    .address = link->address,
                                    .rank = r->rank,
                                    .neighbour = r->port[link->port].neighbour,
                                    .port = link->port,
                                    .boot = r->boot,
                                    .random = r->io.random,
                                    .random_context = r->io.context,
                                    .say = say,
                                    .say_context = link};
}

struct link *router_connected(struct router *r, unsigned port, bool dialled, void *connection,
                              const char *address)
{
    struct link *link;

    if (dialled)
        r->port[port].dialling = false;
    if (r->stopping)
        return NULL;
    port_make_room(r, port);
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
    const struct handshake_place place = place_of(link);
    handshake_begin(&link->stranger->handshake, &place, dialled);
    return link;
}

static void forget_stranger(struct link *link)
{
    if (link->stranger == NULL)
        return;
    handshake_forget(&link->stranger->handshake);
    free(link->stranger);
    link->stranger = NULL;
}

static void link_free(struct link *link)
{
    forget_stranger(link);
    decoder_free(&link->decoder);
    outgoing_clear(&link->router->outgoing, &link->own);
    if (link->slab != NULL)
        slab_unref(link->slab);
    free(link);
}

/* Says why before closing, so that the other side can name the reason in its own log. */
static struct outgoing *refusal(struct router *r, const char *reason)
{
    Peer__Refusal message = PEER__REFUSAL__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    struct outgoing *frame = outgoing_new(&r->outgoing);

    message.reason = (char *)(uintptr_t)reason;
    head.kind_case = PEER__HEAD__KIND_REFUSAL;
    head.refusal = &message;
    if (frame != NULL && outgoing_set_head(frame, &head) != 0) {
        outgoing_free(&r->outgoing, frame);
        frame = NULL;
    }
    return frame;
}

void link_close(struct link *link, const struct error *why, bool tell_peer)
{
    struct router *r = link->router;
    struct outgoing *last = NULL;

    if (link->feeding) {
        if (!link->doomed) {
            link->doomed = true;
            link->doom = *why;
        }
        return;
    }
    if (tell_peer)
        last = refusal(r, why->text);
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

/* The neighbour has given up all its connections but the last. */
static void replace_others(struct link *link)
{
    const struct error replaced = {ERROR_LINK, "replaced by a new connection of its node"};
    struct port *port = &link->router->port[link->port];
    struct link *following;

    if (port->link != NULL)
        link_close(port->link, &replaced, false);
    for (struct link *other = port->candidates; other != NULL; other = following) {
        following = other->next;
        if (other != link && other->stranger == NULL)
            link_close(other, &replaced, false);
    }
}

/* It is the neighbour's. */
static int let_in(struct link *link, struct error *e)
{
    struct router *r = link->router;
    const struct handshake *h = &link->stranger->handshake;

    if (r->secrets.encrypt) {
        const struct handshake_place place = place_of(link);
        struct link_keys keys;
        if (r->io.encrypt == NULL)
            return error_set(e, ERROR_LINK, "links cannot be encrypted here");
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
    decoder_init(&link->decoder, FRAME_MAX_HEAD, FRAME_MAX_BODY);
    uint64_t reports = r->torus->nodes * REPORT_MEMORY;
    link->decoder.max_more += (uint32_t)(reports < REPORTS_MOST ? reports : REPORTS_MOST);
    if (r->io.proved != NULL)
        r->io.proved(r->io.context, link->connection);
    replace_others(link);
    forget_stranger(link);
    return probe_begin(link, e);
}

static void heartbeat(struct link *link, const Peer__Heartbeat *beat)
{
    if (beat->interval_ms > 0)
        link->interval =
            (beat->interval_ms < HEARTBEAT_MOST_MS ? beat->interval_ms : HEARTBEAT_MOST_MS) *
            MILLISECONDS;
}

static uint32_t beats(const struct router *r, uint64_t time)
{
    return (uint32_t)((time + r->heartbeat - 1) / r->heartbeat);
}

static double seconds(uint64_t time)
{
    return (double)time / (double)SECONDS;
}

int link_beat(struct link *link, struct error *why)
{
    struct router *r = link->router;
    struct connection_stat stat = {0};
    bool heard = link->heard || link->held_by != 0; /* held: it is we who do not listen */
    uint64_t stall = r->silence > ROUTER_STALL ? r->silence : ROUTER_STALL;
    uint64_t unacked = r->silence > ROUTER_UNACKED ? r->silence : ROUTER_UNACKED;

    if (stall < ROUTER_STALL_BEATS * link->interval)
        stall = ROUTER_STALL_BEATS * link->interval;
    r->io.stat(r->io.context, link->connection, &stat);
    bool taken = !stat.in_flight || stat.acked != link->acked;
    bool answered = heard || taken;
    link->acked = stat.acked;
    link->blocked = taken ? 0 : link->blocked + 1;
    link->heard = false;
    link->unheard = heard ? 0 : link->unheard + 1;
    link->unanswered = answered ? 0 : link->unanswered + 1;
    if (link->unanswered >= beats(r, r->silence)) {
        port_lost(r, link->port, r->silence);
        return error_set(why, ERROR_LINK, "silent for %.3g s", seconds(r->silence));
    }
    if (link->blocked >= beats(r, unacked)) {
        port_lost(r, link->port, unacked);
        faults_of_mtu(r, link->port, &stat);
        probe_ask_mtu(stat.unacked, stat.mtu, why);
        return -1;
    }
    if (link->unheard >= beats(r, stall))
        return error_set(why, ERROR_LINK,
                         "silent for %.3g s: torusd there is stopped or overloaded",
                         seconds(stall));
    return 0;
}

static int on_probe(struct link *link, const Peer__Head *head, struct error *e)
{
    int result = probe_heard(link, head, e);

    if (result > 0)
        port_link_up(link);
    return result < 0 ? -1 : 0;
}

static int on_frame(void *context, const Peer__Head *head, const struct extents *body,
                    uint32_t body_length, struct error *e)
{
    struct link *link = context;
    struct router *r = link->router;
    int result = 0;

    link->last_frame = r->now;
    if (head->kind_case == PEER__HEAD__KIND_REFUSAL) {
        char reason[256];
        return error_set(e, ERROR_LINK, "refused by %s: %s", link->address,
                         text_printable(reason, sizeof reason, head->refusal->reason));
    }
    if (!link->up)
        return on_probe(link, head, e);
    switch (head->kind_case) {
    case PEER__HEAD__KIND_HELLO:
    case PEER__HEAD__KIND_PROOF:
    case PEER__HEAD__KIND_PROBE:
    case PEER__HEAD__KIND_PROBE_ANSWERED:
        return error_set(e, ERROR_PROTOCOL, "%s said hello twice", link->address);
    default:
        break;
    }
    if (head->kind_case == PEER__HEAD__KIND_LINK_STATE)
        result = flood_heard(r, link->port, head->link_state, e);
    else if (head->kind_case == PEER__HEAD__KIND_LINK_FAULT)
        result = faults_heard(r, link->port, head->link_fault, e);
    else if (head->kind_case == PEER__HEAD__KIND_HEARTBEAT)
        heartbeat(link, head->heartbeat);
    else
        result = r->handler.frame(r->handler.context, link->port, head, body, body_length, e);
    if (result == 0 && link->doomed) {
        *e = link->doom;
        return -1;
    }
    return result;
}

static uint8_t *stranger_room(struct stranger *s, size_t *size)
{
    uint32_t whole = FRAME_PREFIX_SIZE + (s->have < FRAME_PREFIX_SIZE ? 0 : s->prefix.head);

    *size = whole - s->have;
    return s->bytes + s->have;
}

/* `length` more bytes of a stranger. Returns 0, or -1 with *e. */
static int stranger_received(struct link *link, size_t length, struct error *e)
{
    const struct router *r = link->router;
    struct stranger *s = link->stranger;
    const struct handshake_place place = place_of(link);
    Peer__Head *head;
    int result;

    s->have += (uint32_t)length;
    if (s->have < FRAME_PREFIX_SIZE)
        return 0;
    if (s->have == FRAME_PREFIX_SIZE)
        return frame_prefix_read(s->bytes, FRAME_MAX_STRANGER_HEAD, 0, &s->prefix, e);
    if (s->have < FRAME_PREFIX_SIZE + s->prefix.head)
        return 0;
    s->have = 0;
    head = peer__head__unpack(NULL, s->prefix.head, s->bytes + FRAME_PREFIX_SIZE);
    if (head == NULL)
        return error_set(e, ERROR_PROTOCOL, "frame whose head is not a message");
    result =
        r->port[link->port].flapping.held
            ? error_set(e, ERROR_REFUSED,
                        "node %u keeps this link out because it flaps, until it is quiet", r->rank)
            : handshake_heard(&s->handshake, &place, head, e);
    peer__head__free_unpacked(head, NULL);
    if (result != 0 && s->handshake.elsewhere)
        faults_sighted(link->router, link->port,
                       &(struct sighting){s->handshake.found_rank, s->handshake.found_port,
                                          s->handshake.theirs.boot});
    if (result == 0 && s->handshake.state == HANDSHAKE_DONE)
        result = let_in(link, e);
    return result;
}

uint8_t *link_room(struct link *link, size_t *size)
{
    if (link->stranger != NULL)
        return stranger_room(link->stranger, size);
    if (link->slab != NULL && link->slab->references == 1)
        link->slab_used = link->slab->spared = 0; /* nobody holds a byte of it: use it again */
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
    return link->slab->data + link->slab_used;
}

void link_received(struct link *link, size_t length)
{
    struct error e = {0};
    int result;

    link->rx_bytes += length;
    link->heard = true;
    link->router->now = router_now(link->router);
    link->feeding = true;
    if (link->stranger != NULL) {
        result = stranger_received(link, length, &e);
        if (result == 0 && link->doomed) {
            e = link->doom;
            result = -1;
        }
    } else {
        const uint8_t *data = link->slab->data + link->slab_used;
        link->slab_used += (uint32_t)length;
        link->router->reading = link;
        result = decoder_feed(&link->decoder, link->slab, data, length, on_frame, link, &e);
        flood_read(link->router);
        link->router->reading = NULL;
        if (result == 0 && link->doomed) {
            e = link->doom;
            result = -1;
        }
    }
    link->feeding = false;
    if (result != 0)
        link_close(link, &e, e.code == ERROR_PROTOCOL || e.code == ERROR_REFUSED);
}

bool link_held(const struct link *link)
{
    return link->held_by != 0;
}

struct outgoing *link_next(struct link *link)
{
    struct router *r = link->router;
    struct port *port = &r->port[link->port];
    struct outgoing *frame = outgoing_pop(&link->own);

    if (frame == NULL && link->up) {
        frame = outgoing_pop(&port->control);
        if (port->holds && port->control.bytes <= ROUTER_QUEUE_MOST / 2)
            send_release(r, link->port);
        if (frame == NULL)
            frame = outgoing_pop(&port->relay);
        if (frame == NULL)
            frame = r->handler.next(r->handler.context, link->port);
    }
    if (frame != NULL) {
        link->taken_at = r->now;
        link->tx_bytes += frame->head_length + frame->body_length;
    }
    return frame;
}
