#include "daemon/torusd/router/links/admission.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/router/flooding/faults.h"
#include "daemon/torusd/router/links/link.h"
#include "daemon/torusd/router/links/probe.h"
#include "daemon/torusd/router/links/stranger.h"
#include "daemon/torusd/router/record/router_record.h"
#include "daemon/torusd/router/record/view.h"

#define REPORT_MEMORY UINT64_C(4096) /* most bytes of a node's report in memory */
#define REPORTS_MOST (UINT64_C(64) << 20)
#define PORT_CANDIDATES 32u /* most connections of a port that have not proved themselves */

static void send_to_stranger(void *context, const struct peer_message *message)
{
    struct link *link = context;
    struct router *r = link->router;
    struct outgoing *frame = outgoing_new(&r->outgoing);

    if (frame == NULL)
        return; /* nothing is sent: the peer closes the connection after its time limit, and this node dials
                 * again */
    if (outgoing_set_message(frame, message) != 0) {
        outgoing_free(&r->outgoing, frame);
        return;
    }
    frame->plain = true;
    outgoing_push(&link->handshake_frames, frame);
    r->io.wake(r->io.context, link->connection);
}

static struct handshake_place handshake_place_of(struct link *link)
{
    struct router *r = link->router;

    return (struct handshake_place){.torus = r->torus,
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
    const struct handshake_place place = handshake_place_of(link);
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
        const struct handshake_place place = handshake_place_of(link);
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

uint8_t *admission_room(struct link *link, size_t *size)
{
    struct stranger *s = link->stranger;
    uint32_t whole = FRAME_PREFIX_SIZE + (s->have < FRAME_PREFIX_SIZE ? 0 : s->prefix.head);

    *size = whole - s->have;
    return s->bytes + s->have;
}

int admission_received(struct link *link, size_t length, struct error *e)
{
    const struct router *r = link->router;
    struct stranger *s = link->stranger;
    const struct handshake_place place = handshake_place_of(link);
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
