/* One port: dialled again and again, or listened on; at most one link that is up. */
#include "daemon/router/record/internal.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "proto/text.h"

#define BACKOFF_FIRST (50 * MILLISECONDS)
#define BACKOFF_MOST (2 * SECONDS)
#define TURNED_AWAY_TIME (10 * SECONDS)
#define TURNED_AWAY_LOGGED 16u /* in that time, one by one */

bool port_dials(unsigned port)
{
    return torus_port_direction(port) > 0;
}

void port_dial(struct router *r, unsigned i)
{
    r->port[i].dial_at = ROUTER_NEVER;
    r->port[i].dialling = true;
    r->io.dial(r->io.context, i);
}

/* Logs a reason once, not at every try. */
void port_note(struct router *r, unsigned i, const char *reason)
{
    struct port *port = &r->port[i];
    char name[TORUS_PORT_NAME_SIZE];

    if (port->no_carrier || strcmp(port->reason, reason) == 0)
        return;
    (void)snprintf(port->reason, sizeof port->reason, "%s", reason);
    if (!r->stopping)
        log_warning("port %s to node %u: %s", torus_port_name(i, name), port->neighbour, reason);
}

/* A connection was refused that somebody else has made. There may be any number of them: each reason is
 * logged when it is new, and not too many of them. */
static void turn_away(struct router *r, unsigned i, const char *address, const char *reason)
{
    struct port *port = &r->port[i];
    struct turned_away *t = &port->turned_away;

    if (port->link == NULL)
        (void)snprintf(port->reason, sizeof port->reason, "%s", reason);
    if (r->stopping)
        return;
    if (t->since == ROUTER_NEVER) {
        t->since = router_now(r);
        t->logged = t->others = 0;
    }
    if (t->logged < TURNED_AWAY_LOGGED && strcmp(t->last, reason) != 0) {
        char name[TORUS_PORT_NAME_SIZE];
        t->logged++;
        log_warning("port %s: a connection that is not the neighbour was rejected: %s: %s",
                    torus_port_name(i, name), address, reason);
    } else {
        t->others++;
    }
    (void)snprintf(t->last, sizeof t->last, "%s", reason);
}

uint64_t port_turned_away_deadline(const struct port *port)
{
    const struct turned_away *t = &port->turned_away;

    return t->since == ROUTER_NEVER ? ROUTER_NEVER : t->since + TURNED_AWAY_TIME;
}

void port_tell_turned_away(struct router *r, unsigned i, uint64_t now)
{
    struct turned_away *t = &r->port[i].turned_away;
    char name[TORUS_PORT_NAME_SIZE];

    if (now < port_turned_away_deadline(&r->port[i]))
        return;
    /* A neighbour that is not set up right tries again every other second; that is no news. */
    if (t->others < TURNED_AWAY_LOGGED) {
        t->since = ROUTER_NEVER;
        return;
    }
    log_warning("port %s: %u more %s rejected in %d s, the last one: %s", torus_port_name(i, name),
                t->others,
                text_plural(t->others, "connection that is not the neighbour was",
                            "connections that are not the neighbour were"),
                (int)(TURNED_AWAY_TIME / SECONDS), t->last);
    /* They are counted only, from now on, until there is a while with few. */
    t->since = now;
    t->logged = TURNED_AWAY_LOGGED;
    t->others = 0;
}

/* A flood of strangers must not keep the neighbour out. Who has said nothing right yet goes first, the
 * oldest of them; then anyone, so that nobody can choose. Our own connections stay. */
void port_make_room(struct router *r, unsigned i)
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
    (void)error_set(&crowded, ERROR_LINK, "too many connections at once, at most %u are possible",
                    PORT_CANDIDATES);
    link_close(silent != NULL ? silent : other, &crowded, false);
}

/* A connection of ours that is up, or may be soon. */
static bool has_dialled(const struct port *port)
{
    const struct link *link = port->candidates;

    while (link != NULL && !link->dialled)
        link = link->next;
    return port->link != NULL || link != NULL;
}

/* Unless there is another connection, whose end comes here, too: if each that is replaced were dialled
 * again, the new ones would replace each other for ever. */
static void redial_later(struct router *r, unsigned i)
{
    struct port *port = &r->port[i];
    uint64_t jitter;

    if (!port_dials(i) || r->stopping || port->dialling || port->dial_at != ROUTER_NEVER ||
        port->flapping.held || has_dialled(port))
        return;
    port->backoff = port->backoff == 0 ? BACKOFF_FIRST : port->backoff * 2;
    if (port->backoff > BACKOFF_MOST)
        port->backoff = BACKOFF_MOST;
    r->io.random(r->io.context, &jitter, sizeof jitter);
    port->dial_at = router_now(r) + port->backoff / 2 + jitter % (port->backoff / 2 + 1);
}

void router_dial_failed(struct router *r, unsigned port, const char *reason)
{
    r->port[port].dialling = false;
    port_note(r, port, reason);
    redial_later(r, port);
}

void router_dial_again(struct router *r, unsigned i)
{
    struct port *port = &r->port[i];

    if (!port_dials(i) || r->stopping || port->flapping.held || has_dialled(port))
        return;
    port->backoff = 0;
    port_dial(r, i);
}

void router_listening(struct router *r, unsigned i, const char *fault)
{
    struct port *port = &r->port[i];
    char name[TORUS_PORT_NAME_SIZE];

    if (fault != NULL) {
        port_note(r, i, fault);
    } else if (port->reason[0] != '\0' && port->link == NULL && !port->no_carrier) {
        port->reason[0] = '\0';
        log_info("port %s to node %u: listening", torus_port_name(i, name), port->neighbour);
    }
}

static void forget_candidate(struct port *port, const struct link *link)
{
    for (struct link **at = &port->candidates; *at != NULL; at = &(*at)->next)
        if (*at == link) {
            *at = link->next;
            return;
        }
}

void port_link_up(struct link *link)
{
    struct router *r = link->router;
    struct port *port = &r->port[link->port];
    char name[TORUS_PORT_NAME_SIZE];

    forget_candidate(port, link);
    link->up = link->heard = true;
    link->last_frame = link->taken_at = r->now;
    link->interval = HEARTBEAT_OLD; /* until it has said so */
    if (!router_beats(r))
        r->beat_at = router_now(r) + r->heartbeat;
    port->link = link;
    port->no_carrier = false; /* whatever was told of it */
    port->backoff = 0;
    port->dial_at = ROUTER_NEVER;
    port->reason[0] = port->turned_away.last[0] = '\0';
    port->connects++;
    port->up_since = router_now(r);
    log_info("port %s: link to node %u is up (%s)", torus_port_name(link->port, name),
             port->neighbour, link->address);
    topology_set_self(&r->topology, link->port, true);
    faults_clear(r, link->port);
    flood_everything(r, link->port);
    faults_tell_all(r, link->port);
    flood_self_changed(r);
}

void port_link_gone(struct link *link, const char *reason)
{
    struct router *r = link->router;
    struct port *port = &r->port[link->port];

    if (link->up) {
        port->link = NULL;
        outgoing_clear(&r->outgoing, &port->control);
        outgoing_clear(&r->outgoing, &port->relay);
        if (port->holds)
            send_release(r, link->port);
        flood_lost(r, link->port);
        port_note(r, link->port, reason);
        topology_set_self(&r->topology, link->port, false);
        if (!r->stopping)
            flood_self_changed(r);
    } else {
        forget_candidate(port, link);
        if (link->stranger == NULL && link->probe.told)
            ; /* that the other side gives it up as well is not why */
        else if (link->dialled || link->stranger == NULL)
            port_note(r, link->port, reason);
        else if (!port->no_carrier && !port->flapping.held)
            turn_away(r, link->port, link->address, reason);
    }
    if (link->dialled)
        redial_later(r, link->port);
}

/* How long it has to be quiet after a loss; 0: it does not flap. */
static uint64_t hold_after_loss(struct flapping *f, uint64_t now, uint64_t noticing)
{
    const uint64_t without = now - (f->noticed += noticing);

    f->lost[f->losses++ % ROUTER_FLAP_LOSSES] = without;
    if (f->held)
        return f->hold;
    if (f->hold > 0 && now < f->released + ROUTER_HOLD_FORGET)
        return 2 * f->hold < ROUTER_HOLD_MOST ? 2 * f->hold : ROUTER_HOLD_MOST;
    if (f->losses >= ROUTER_FLAP_LOSSES &&
        without - f->lost[f->losses % ROUTER_FLAP_LOSSES] <= ROUTER_FLAP_TIME)
        return ROUTER_HOLD;
    return 0;
}

void port_lost(struct router *r, unsigned i, uint64_t noticing)
{
    struct flapping *f = &r->port[i].flapping;
    const uint64_t now = router_now(r);
    char name[TORUS_PORT_NAME_SIZE];
    const bool held = f->held;

    f->hold = hold_after_loss(f, now, noticing);
    f->held = f->hold > 0;
    f->until = now + f->hold;
    if (!f->held || held)
        return;
    r->port[i].dial_at = ROUTER_NEVER;
    log_warning(
        "port %s: the link to node %u flaps: it is not used before it has been quiet for %d s",
        torus_port_name(i, name), r->port[i].neighbour, (int)(f->hold / SECONDS));
}

uint64_t port_release_deadline(const struct port *port)
{
    return port->flapping.held && !port->no_carrier ? port->flapping.until : ROUTER_NEVER;
}

void port_release(struct router *r, unsigned i, uint64_t now)
{
    struct port *port = &r->port[i];

    if (now < port_release_deadline(port))
        return;
    port->flapping.held = false;
    port->flapping.released = now;
    (void)snprintf(port->reason, sizeof port->reason, "quiet for %d s",
                   (int)(port->flapping.hold / SECONDS));
    port->backoff = 0;
    if (port_dials(i))
        port_dial(r, i);
}

static void carrier_gone(struct router *r, unsigned i, const char *fault)
{
    struct port *port = &r->port[i];
    const bool held = port->flapping.held;
    struct error why;

    if (!port->no_carrier)
        port_lost(r, i, 0);
    faults_clear(r, i); /* somebody may be plugging in another cable */
    (void)error_set(&why, ERROR_LINK, "%s", fault);
    if (port->link != NULL)
        link_close(port->link, &why, false);
    port->no_carrier = false; /* another fault than before is told, too, */
    if (!held)                /* but not each loss of a link that flaps */
        port_note(r, i, fault);
    (void)snprintf(port->reason, sizeof port->reason, "%s", fault);
    port->no_carrier = true;
    while (port->candidates != NULL)
        link_close(port->candidates, &why, false);
}

static void carrier_back(struct router *r, unsigned i)
{
    struct port *port = &r->port[i];
    char name[TORUS_PORT_NAME_SIZE];

    port->no_carrier = false;
    (void)snprintf(port->reason, sizeof port->reason, "the carrier is back");
    if (!port->flapping.held)
        log_info("port %s to node %u: %s", torus_port_name(i, name), port->neighbour, port->reason);
    port->flapping.until = router_now(r) + port->flapping.hold;
    port->backoff = 0;
    /* A dial that is under way still waits for what was lost. */
    if (port_dials(i) && port->candidates == NULL && !port->flapping.held)
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
