#include "daemon/torusd/router/router.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/router/health.h"
#include "daemon/torusd/router/internal.h"
#include "proto/elapsed.h"
#include "proto/frame.h"
#include "proto/text.h"

#define OVERSLEPT (500 * MILLISECONDS)

struct router *router_new(const struct torus *torus, uint32_t rank, const struct router_io *io,
                          const struct router_handler *handler, struct slab_pool *pool,
                          const struct secrets *secrets)
{
    struct router *r = sodium_init() >= 0 ? calloc(1, sizeof *r) : NULL;

    if (r == NULL)
        return NULL;
    r->torus = torus;
    r->rank = rank;
    r->io = *io;
    r->handler = *handler;
    r->pool = pool;
    if (secrets != NULL)
        r->secrets = *secrets;
    r->flood_at = r->faults.state_at = r->faults.restate_at = r->forwards_until = ROUTER_NEVER;
    r->contest.overrule_at = ROUTER_NEVER;
    r->forwards = TOPOLOGY_FORWARDS_NOT;
    r->heartbeat = ROUTER_HEARTBEAT;
    r->silence = ROUTER_SILENCE;
    while (r->boot == 0)
        io->random(io->context, &r->boot, sizeof r->boot);
    for (unsigned i = 0; i < torus_ports(torus); i++) {
        struct port *port = &r->port[i];
        port->neighbour = torus_neighbour(torus, rank, i);
        port->dial_at = port->turned_away.since = ROUTER_NEVER;
        port->dirty = calloc((torus->nodes + 7) / 8, 1);
        if (port->dirty == NULL)
            goto fail;
    }
    r->in_place = slab_without_pool(0, NULL, NULL);
    if (r->in_place == NULL)
        goto fail;
    r->in_place->where = SLAB_IN_PLACE;
    if (topology_init(&r->topology, torus, rank, r->boot) == 0) {
        router_set_minor(r, PROTOCOL_MINOR);
        return r;
    }
fail:
    for (unsigned i = 0; i < torus_ports(torus); i++)
        free(r->port[i].dirty);
    if (r->in_place != NULL)
        slab_unref(r->in_place);
    free(r);
    return NULL;
}

void router_set_heartbeats(struct router *r, uint64_t interval, uint64_t silence)
{
    r->heartbeat = interval;
    r->silence = silence;
}

void router_set_minor(struct router *r, uint32_t minor)
{
    topology_set_minor(&r->topology, minor);
}

void router_start(struct router *r)
{
    for (unsigned i = 0; i < torus_ports(r->torus); i++)
        if (r->port[i].neighbour != TORUS_NO_NODE && port_dials(r, i))
            port_dial(r, i);
}

/* Logs a link whose key is no longer accepted. It stays up, because a change of keys must not disturb
 * exchanges. */
static void tell_of_old_key(const struct router *r, unsigned i)
{
    const struct link *link = r->port[i].link;
    char name[TORUS_PORT_NAME_SIZE], id[KEY_ID_TEXT_SIZE];

    if (link == NULL || !link->has_key)
        return;
    for (unsigned k = 0; k < r->secrets.count; k++)
        if (memcmp(r->secrets.key[k].id, link->key, KEY_ID_SIZE) == 0)
            return;
    log_info(
        "port %s: the link to node %u stays up, although its cluster key %s is no longer accepted",
        torus_port_name(r->torus, r->rank, i, name), r->port[i].neighbour,
        key_id_text(link->key, id));
}

void router_set_secrets(struct router *r, const struct secrets *secrets)
{
    const struct error why = {.code = ERROR_LINK, .text = "the cluster keys have been read again"};

    for (unsigned i = 0; i < torus_ports(r->torus); i++)
        while (r->port[i].candidates != NULL)
            link_give_up(r->port[i].candidates, &why, false);
    r->secrets = *secrets;
    for (unsigned i = 0; i < torus_ports(r->torus); i++)
        tell_of_old_key(r, i);
}

void router_free(struct router *r)
{
    const struct error why = {.code = ERROR_LINK, .text = "its daemon is stopping"};

    r->stopping = true;
    for (unsigned i = 0; i < torus_ports(r->torus); i++) {
        while (r->port[i].candidates != NULL)
            link_give_up(r->port[i].candidates, &why, false);
        if (r->port[i].link != NULL)
            link_give_up(r->port[i].link, &why, true);
        outgoing_clear(&r->outgoing, &r->port[i].control);
        outgoing_clear(&r->outgoing, &r->port[i].relay);
        free(r->port[i].dirty);
    }
    outgoing_pool_close(&r->outgoing);
    topology_free(&r->topology);
    slab_unref(r->in_place);
    for (unsigned i = 0; i < SECRETS_MOST; i++)
        key_forget(&r->secrets.key[i]);
    free(r);
}

static void tick_hello(struct link *link, uint64_t now)
{
    struct error why;

    if (link->to_close) {
        why = link->close_reason;
        link_give_up(link, &why, false);
    } else if (link->stranger == NULL) {
        if (probe_check(link, now, &why) != 0)
            link_give_up(link, &why, false);
    } else if (now >= link->opened + ROUTER_HELLO_TIME) {
        (void)error_set(&why, ERROR_LINK, "the other side did not %s within %d s",
                        link->stranger->handshake.state == HANDSHAKE_HELLO
                            ? "say hello"
                            : "prove that it has the cluster key",
                        (int)(ROUTER_HELLO_TIME / SECONDS));
        link_give_up(link, &why, false);
    }
}

static uint64_t frame_time(const struct router *r)
{
    return r->silence > ROUTER_FRAME_TIME ? r->silence : ROUTER_FRAME_TIME;
}

/* Whether the other end does not take the frames that wait for it. */
static bool is_stuck(struct router *r, struct link *link, uint64_t now)
{
    struct connection_stat stat = {0};

    if (r->port[link->port].control.bytes <= ROUTER_QUEUE_MOST ||
        now < link->taken_at + ROUTER_STALL)
        return false;
    r->io.stat(r->io.context, link->connection, &stat);
    if (stat.acked == link->taken)
        return true;
    link->taken = stat.acked;
    link->taken_at = now;
    return false;
}

/* Checks a link that is up. */
static int check_link(struct router *r, struct link *link, uint64_t now, bool beat,
                      struct error *why)
{
    if (link->to_close) {
        *why = link->close_reason;
        return -1;
    }
    if (link->held_by != 0) /* this node has stopped reading */
        link->last_frame = now;
    if (beat && silence_beat(link, why) != 0)
        return -1;
    if (now >= link->last_frame + frame_time(r))
        return error_set(why, ERROR_PROTOCOL, "no complete frame for %d s",
                         (int)(frame_time(r) / SECONDS));
    if (is_stuck(r, link, now))
        return error_set(
            why, ERROR_PROTOCOL, "node %u has read nothing for %d s while %zu %s for it",
            r->port[link->port].neighbour, (int)(ROUTER_STALL / SECONDS),
            r->port[link->port].control.bytes,
            text_plural(r->port[link->port].control.bytes, "byte waits", "bytes wait"));
    return 0;
}

static void send_heartbeat(struct router *r, const struct link *link)
{
    struct peer_message heartbeat = {
        .kind = PEER_HEARTBEAT,
        .heartbeat = {.interval_ms = (uint32_t)(r->heartbeat / MILLISECONDS)}};

    if (link->minor >= LINK_CLOCK_MINOR)
        link_clock_fill(&link->clock, &heartbeat.heartbeat, router_now(r));
    router_send(r, link->port, &heartbeat);
}

/* `beat`: a heartbeat interval is over; `quick`: one of the shorter intervals of health.h. */
static void tick_link(struct router *r, struct link *link, uint64_t now, bool beat, bool quick)
{
    struct error why;

    if (quick)
        quiet_beat(link);
    if (check_link(r, link, now, beat, &why) != 0)
        link_give_up(link, &why, why.code == ERROR_PROTOCOL);
    else if (beat || quick)
        send_heartbeat(r, link);
}

/* Returns how many nanoseconds this tick is late, because this node was not running (stopped, or without a
 * processor). Such time must not count as silence of the peers. It is measured from the deadline and not from
 * the last tick: on busy links nothing is due for a long time.
 */
static uint64_t time_not_running(const struct router *r, uint64_t now)
{
    uint64_t due = r->any_to_close ? now : router_deadline(r), late = elapsed(due, now);

    return late > OVERSLEPT ? late : 0;
}

/* Whether a heartbeat interval is over. A late tick counts as one interval. */
static bool beat_is_due(struct router *r, uint64_t now)
{
    if (now < r->beat_at || !router_beats(r))
        return false;
    r->beat_at += r->heartbeat;
    if (r->beat_at <= now)
        r->beat_at = now + r->heartbeat;
    return true;
}

void router_tick(struct router *r)
{
    uint64_t now = r->now = router_now(r);
    uint64_t slept = time_not_running(r, now);
    bool beat = beat_is_due(r, now), quick = quiet_is_due(r, now);

    r->any_to_close = false;
    if (r->forwards_until != ROUTER_NEVER)
        r->forwards_until += slept; /* torus-routed was not running, either */
    for (unsigned i = 0; i < torus_ports(r->torus); i++) {
        struct port *port = &r->port[i];
        struct link *following;
        for (struct link *link = port->candidates; link != NULL; link = following) {
            following = link->next;
            link->opened += slept;
            link->probe.since += slept;
            tick_hello(link, now);
        }
        if (port->link != NULL) {
            port->link->last_frame += slept;
            port->link->taken_at += slept;
            tick_link(r, port->link, now, beat, quick);
            flood_tick(r, i, now);
        }
        turned_away_tell(r, i, now);
        flapping_release(r, i, now);
        if (now >= port->dial_at)
            port_dial(r, i);
    }
    faults_tick(r, now);
    flood_check_lease(r, now);
    quiet_state(r);
    flood_overrule(r, now);
    if (now >= r->flood_at)
        flood_flush(r);
}

static void set_earlier(uint64_t *at, uint64_t other)
{
    if (other < *at)
        *at = other;
}

uint64_t router_deadline(const struct router *r)
{
    uint64_t at = r->any_to_close ? 0 : r->flood_at;

    set_earlier(&at, faults_deadline(r));
    set_earlier(&at, quiet_deadline(r));
    set_earlier(&at, r->forwards_until);
    set_earlier(&at, r->contest.overrule_at);
    for (unsigned i = 0; i < torus_ports(r->torus); i++) {
        const struct port *port = &r->port[i];
        for (const struct link *link = port->candidates; link != NULL; link = link->next)
            set_earlier(&at, link->stranger != NULL ? link->opened + ROUTER_HELLO_TIME
                                                    : probe_deadline(link));
        if (port->link != NULL) {
            set_earlier(&at, r->beat_at);
            set_earlier(&at, port->link->last_frame + frame_time(r));
            set_earlier(&at, port->restate_at);
            if (port->control.bytes > ROUTER_QUEUE_MOST)
                set_earlier(&at, port->link->taken_at + ROUTER_STALL);
        }
        set_earlier(&at, port->dial_at);
        set_earlier(&at, flapping_deadline(port));
        set_earlier(&at, turned_away_deadline(port));
    }
    return at;
}
