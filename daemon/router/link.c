/* One connection: hello, frames in, frames out. Nothing is believed of it before its hello has
 * turned out to be that of the neighbour that the cabling promises. */
#include "daemon/router/internal.h"

#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

#define ROOM_WORTH_READING (16u * 1024u)

static void say_hello(struct link *link)
{
    struct router *r = link->router;
    char dims[TORUS_TEXT_SIZE];
    Peer__Hello hello = PEER__HELLO__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    struct outgoing *frame = outgoing_new(&r->outgoing);

    hello.version = PROTOCOL_VERSION;
    hello.dims = torus_format(r->torus, dims);
    hello.rank = r->rank;
    hello.port = link->port;
    hello.boot = r->boot;
    head.kind_case = PEER__HEAD__KIND_HELLO;
    head.hello = &hello;
    if (frame == NULL)
        return; /* no hello: the peer closes after its time, and we try again */
    if (outgoing_set_head(frame, &head) != 0) {
        outgoing_free(&r->outgoing, frame);
        return;
    }
    outgoing_push(&link->own, frame);
    r->io.wake(r->io.context, link->connection);
}

struct link *router_connected(struct router *r, unsigned port, bool dialled, void *connection,
                              const char *address)
{
    const struct error crowded = {ERROR_LINK, "too many connections that have not said hello"};
    unsigned candidates = 0;
    struct link *link, *oldest = NULL;

    if (dialled)
        r->port[port].dialling = false;
    if (r->stopping)
        return NULL;
    for (link = r->port[port].candidates; link != NULL; link = link->next, candidates++)
        oldest = link;
    /* Strangers that say nothing must not keep the neighbour out. */
    if (candidates == PORT_CANDIDATES)
        link_close(oldest, &crowded, false);
    link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    link->router = r;
    link->connection = connection;
    link->port = port;
    link->dialled = dialled;
    (void)strncpy(link->address, address, sizeof link->address - 1);
    decoder_init(&link->decoder, FRAME_MAX_STRANGER_HEAD, 0);
    r->now = router_now(r);
    link->opened = link->last_received = link->last_frame = link->last_sent = r->now;
    link->taken_at = r->now;
    link->next = r->port[port].candidates;
    r->port[port].candidates = link;
    say_hello(link);
    return link;
}

static void link_free(struct link *link)
{
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
    r->io.close(r->io.context, link->connection, last);
    port_link_gone(link, why->text);
    link_free(link);
}

void link_closed(struct link *link, const char *reason)
{
    port_link_gone(link, reason);
    link_free(link);
}

/* Is this the neighbour that the cabling promises at this port? */
static int check_hello(const struct link *link, const Peer__Hello *hello, struct error *e)
{
    const struct router *r = link->router;
    uint32_t neighbour = r->port[link->port].neighbour;
    unsigned opposite = torus_port_opposite(link->port);
    char mine[TORUS_TEXT_SIZE], theirs[TORUS_TEXT_SIZE];
    char expected[TORUS_PORT_NAME_SIZE], got[TORUS_PORT_NAME_SIZE];

    if (hello->version != PROTOCOL_VERSION)
        return error_set(e, ERROR_PROTOCOL,
                         "%s speaks protocol version %u, node %u speaks version %u", link->address,
                         hello->version, r->rank, PROTOCOL_VERSION);
    torus_format(r->torus, mine);
    if (strcmp(hello->dims, mine) != 0)
        return error_set(e, ERROR_PROTOCOL, "%s is in a torus %s, node %u is in %s", link->address,
                         text_printable(theirs, sizeof theirs, hello->dims), r->rank, mine);
    if (hello->rank != neighbour || hello->port != opposite)
        return error_set(
            e, ERROR_PROTOCOL,
            "wrong cabling: %s is node %u port %s, node %u expects node %u port %s there",
            link->address, hello->rank,
            hello->port < TORUS_MAX_PORTS ? torus_port_name(hello->port, got) : "?", r->rank,
            neighbour, torus_port_name(opposite, expected));
    return 0;
}

static int on_frame(void *context, const Peer__Head *head, const struct extents *body,
                    uint32_t body_length, struct error *e)
{
    const struct error replaced = {ERROR_LINK, "replaced by a new connection of its node"};
    struct link *link = context;
    struct router *r = link->router;
    int result = 0;

    link->last_frame = link->last_received;
    if (head->kind_case == PEER__HEAD__KIND_REFUSAL) {
        char reason[256];
        return error_set(e, ERROR_LINK, "refused by %s: %s", link->address,
                         text_printable(reason, sizeof reason, head->refusal->reason));
    }
    if (!link->up) {
        if (head->kind_case != PEER__HEAD__KIND_HELLO)
            return error_set(e, ERROR_PROTOCOL, "%s did not say hello first", link->address);
        if (check_hello(link, head->hello, e) != 0)
            return -1;
        link->decoder.max_head = FRAME_MAX_HEAD;
        link->decoder.max_body = FRAME_MAX_BODY;
        if (r->port[link->port].link != NULL)
            link_close(r->port[link->port].link, &replaced, false);
        port_link_up(link);
    } else if (head->kind_case == PEER__HEAD__KIND_HELLO) {
        return error_set(e, ERROR_PROTOCOL, "%s said hello twice", link->address);
    } else if (head->kind_case == PEER__HEAD__KIND_LINK_STATE) {
        result = flood_heard(r, link->port, head->link_state, e);
    } else if (head->kind_case != PEER__HEAD__KIND_HEARTBEAT) {
        result = r->handler.frame(r->handler.context, link->port, head, body, body_length, e);
    }
    if (result == 0 && link->doomed) {
        *e = link->doom;
        return -1;
    }
    return result;
}

uint8_t *link_room(struct link *link, size_t *size)
{
    if (link->slab != NULL && link->slab->references == 1)
        link->slab_used = 0; /* nobody holds a byte of it: use it again */
    if (link->slab != NULL && SLAB_SIZE - link->slab_used < ROOM_WORTH_READING) {
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
    const uint8_t *data = link->slab->data + link->slab_used;
    struct error e = {0};

    link->slab_used += (uint32_t)length;
    link->rx_bytes += length;
    link->last_received = link->router->now = router_now(link->router);
    link->feeding = true;
    link->router->reading = link;
    int result = decoder_feed(&link->decoder, link->slab, data, length, on_frame, link, &e);
    link->feeding = false;
    link->router->reading = NULL;
    if (result != 0)
        link_close(link, &e, e.code == ERROR_PROTOCOL);
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
        link->last_sent = link->taken_at = r->now;
        link->tx_bytes += frame->head_length + frame->body_length;
    }
    return frame;
}
