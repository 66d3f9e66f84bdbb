#include "daemon/router/internal.h"

#include <stdio.h>
#include <stdlib.h>

struct router *router_new(const struct torus *torus, uint32_t rank, const struct router_io *io,
                          const struct router_handler *handler, struct slab_pool *pool)
{
    struct router *r = calloc(1, sizeof *r);

    if (r == NULL)
        return NULL;
    r->torus = torus;
    r->rank = rank;
    r->io = *io;
    r->handler = *handler;
    r->pool = pool;
    r->flood_at = ROUTER_NEVER;
    while (r->boot == 0)
        io->random(io->context, &r->boot, sizeof r->boot);
    for (unsigned i = 0; i < torus_ports(torus); i++) {
        struct port *port = &r->port[i];
        port->neighbour = torus_neighbour(torus, rank, i);
        port->dial_at = ROUTER_NEVER;
        port->dirty = calloc((torus->nodes + 7) / 8, 1);
        if (port->dirty == NULL)
            goto fail;
    }
    if (topology_init(&r->topology, torus, rank, r->boot) == 0)
        return r;
fail:
    for (unsigned i = 0; i < torus_ports(torus); i++)
        free(r->port[i].dirty);
    free(r);
    return NULL;
}

void router_start(struct router *r)
{
    for (unsigned i = 0; i < torus_ports(r->torus); i++)
        if (r->port[i].neighbour != TORUS_NO_NODE && port_dials(i))
            port_dial(r, i);
}

void router_free(struct router *r)
{
    const struct error why = {ERROR_LINK, "its daemon is stopping"};

    r->stopping = true;
    for (unsigned i = 0; i < torus_ports(r->torus); i++) {
        while (r->port[i].candidates != NULL)
            link_close(r->port[i].candidates, &why, false);
        if (r->port[i].link != NULL)
            link_close(r->port[i].link, &why, true);
        outgoing_clear(&r->outgoing, &r->port[i].control);
        outgoing_clear(&r->outgoing, &r->port[i].relay);
        free(r->port[i].dirty);
    }
    outgoing_pool_close(&r->outgoing);
    topology_free(&r->topology);
    free(r);
}

static void tick_hello(struct link *link, uint64_t now)
{
    struct error why;

    if (link->doomed) {
        why = link->doom;
        link_close(link, &why, false);
    } else if (now >= link->opened + ROUTER_HELLO_TIME) {
        (void)error_set(&why, ERROR_LINK, "%s did not say hello within %d s", link->address,
                        (int)(ROUTER_HELLO_TIME / SECONDS));
        link_close(link, &why, false);
    }
}

/* Has its other end stopped taking what waits for it? */
static bool is_stuck(struct router *r, struct link *link, uint64_t now)
{
    struct connection_stat stat = {0};

    if (r->port[link->port].control.bytes <= ROUTER_QUEUE_MOST ||
        now < link->taken_at + ROUTER_SILENCE)
        return false;
    r->io.stat(r->io.context, link->connection, &stat);
    if (stat.acked == link->acked)
        return true;
    link->acked = stat.acked;
    link->taken_at = now;
    return false;
}

/* A link that is up: what is wrong with it? */
static int check_link(struct router *r, struct link *link, uint64_t now, struct error *why)
{
    if (link->doomed) {
        *why = link->doom;
        return -1;
    }
    if (link->held_by != 0) /* it is we who do not listen */
        link->last_received = link->last_frame = now;
    if (now >= link->last_received + ROUTER_SILENCE)
        return error_set(why, ERROR_LINK, "silent for %d s", (int)(ROUTER_SILENCE / SECONDS));
    if (now >= link->last_frame + ROUTER_FRAME_TIME)
        return error_set(why, ERROR_PROTOCOL, "no complete frame for %d s",
                         (int)(ROUTER_FRAME_TIME / SECONDS));
    if (is_stuck(r, link, now))
        return error_set(why, ERROR_PROTOCOL,
                         "node %u has read nothing for %d s while %zu bytes wait for it",
                         r->port[link->port].neighbour, (int)(ROUTER_SILENCE / SECONDS),
                         r->port[link->port].control.bytes);
    return 0;
}

static void tick_link(struct router *r, struct link *link, uint64_t now)
{
    Peer__Heartbeat beat = PEER__HEARTBEAT__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    struct error why;

    if (check_link(r, link, now, &why) != 0) {
        link_close(link, &why, why.code == ERROR_PROTOCOL);
    } else if (now >= link->last_sent + ROUTER_HEARTBEAT) {
        head.kind_case = PEER__HEAD__KIND_HEARTBEAT;
        head.heartbeat = &beat;
        link->last_sent = now;
        router_send(r, link->port, &head);
    }
}

/* How late this tick is. If it was we who slept (stopped, starved of a processor), the peers are
 * not to blame. The time since the last tick would not tell: on busy links nothing is due for long.
 */
static uint64_t overslept(const struct router *r, uint64_t now)
{
    uint64_t due = r->any_doomed ? now : router_deadline(r);

    return due < now && now - due > 2 * ROUTER_HEARTBEAT ? now - due : 0;
}

void router_tick(struct router *r)
{
    uint64_t now = r->now = router_now(r);
    uint64_t slept = overslept(r, now);

    r->any_doomed = false;
    for (unsigned i = 0; i < torus_ports(r->torus); i++) {
        struct port *port = &r->port[i];
        struct link *following;
        for (struct link *link = port->candidates; link != NULL; link = following) {
            following = link->next;
            link->opened += slept;
            tick_hello(link, now);
        }
        if (port->link != NULL) {
            port->link->last_received += slept;
            port->link->last_frame += slept;
            port->link->taken_at += slept;
            tick_link(r, port->link, now);
            flood_tick(r, i, now);
        }
        if (now >= port->dial_at)
            port_dial(r, i);
    }
    if (now >= r->flood_at)
        flood_flush(r);
}

static void earlier(uint64_t *at, uint64_t other)
{
    if (other < *at)
        *at = other;
}

uint64_t router_deadline(const struct router *r)
{
    uint64_t at = r->any_doomed ? 0 : r->flood_at;

    for (unsigned i = 0; i < torus_ports(r->torus); i++) {
        const struct port *port = &r->port[i];
        for (const struct link *link = port->candidates; link != NULL; link = link->next)
            earlier(&at, link->opened + ROUTER_HELLO_TIME);
        if (port->link != NULL) {
            earlier(&at, port->link->last_received + ROUTER_SILENCE);
            earlier(&at, port->link->last_frame + ROUTER_FRAME_TIME);
            earlier(&at, port->link->last_sent + ROUTER_HEARTBEAT);
            earlier(&at, port->restate_at);
            if (port->control.bytes > ROUTER_QUEUE_MOST)
                earlier(&at, port->link->taken_at + ROUTER_SILENCE);
        }
        earlier(&at, port->dial_at);
    }
    return at;
}
