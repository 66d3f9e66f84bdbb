/* Links that are down or work badly. Each link is judged once, with what both ends say. */
#include <stdio.h>
#include <string.h>

#include "client/cli/doctor/doctor.h"

#define PACKET_BYTES 1448u     /* of data, in a packet of the usual size */
#define RETRANSMITS_LEAST 100u /* fewer are not judged */
#define RETRANSMITS_PART 1000u /* one of this many packets */
#define CONNECTS_MANY 5u
#define END_SIZE 160u

/* "port +0 of alpha (eth1)" */
static const char *end_text(const struct doctor *d, uint32_t node, unsigned port,
                            char text[END_SIZE])
{
    const struct torus_link *l = doctor_link(d, node, port);
    char name[TORUS_PORT_NAME_SIZE];

    (void)snprintf(text, END_SIZE, "port %s of %.80s%s%.20s%s",
                   torus_port_name(d->torus, node, port, name), d->node[node].host,
                   l != NULL && l->interface[0] != '\0' ? " (" : "", l != NULL ? l->interface : "",
                   l != NULL && l->interface[0] != '\0' ? ")" : "");
    return text;
}

static bool is_up(const struct torus_link *l)
{
    return l != NULL && l->state == TORUS_LINK_UP;
}

/* What to do about an end whose interface has no carrier; false if it has one, or nothing is known. */
static bool mend_carrier(const struct doctor *d, uint32_t node, const struct torus_link *l,
                         struct finding *f)
{
    const char *facts = d->node[node].facts;

    if (l == NULL || l->interface[0] == '\0')
        return false;
    if (fact_is(facts, fact_name("interface.%s.carrier", l->interface), "0")) {
        finding_mend(f,
                     "plug the cable in at both ends; if it is: ip link set dev %s up on both "
                     "machines, or another cable",
                     l->interface);
        return true;
    }
    if (!fact_is(facts, fact_name("interface.%s.state", l->interface), "down"))
        return false;
    finding_mend(f, "on %.60s: ip link set dev %s up", d->node[node].host, l->interface);
    return true;
}

static const char *reason_of(const struct torus_link *l)
{
    return l == NULL              ? "nothing is known there"
           : is_up(l)             ? "it is up"
           : l->reason[0] != '\0' ? l->reason
                                  : torus_link_state_name(l->state);
}

static void find_down(struct doctor *d, uint32_t node, unsigned port, uint32_t there, unsigned back)
{
    const struct torus_link *l = doctor_link(d, node, port), *m = doctor_link(d, there, back);
    char end[END_SIZE], other[END_SIZE];
    struct finding *f =
        doctor_find(d, SEVERITY_ERROR, "links", node,
                    "the link between %s and %s is down. %.40s: %.100s. %.40s: %.100s",
                    end_text(d, node, port, end), end_text(d, there, back, other),
                    d->node[node].host, reason_of(l), d->node[there].host, reason_of(m));

    f->peer = there;
    f->why = "exchanges avoid the link, and are slower, or fail";
    if (is_up(l) || is_up(m))
        f->why = "one end has noticed what the other has not: the link changes now, or only one "
                 "direction of the cable works";
    if (mend_carrier(d, node, l, f) || mend_carrier(d, there, m, f))
        return;
    if ((l != NULL && l->state == TORUS_LINK_HELD) || (m != NULL && m->state == TORUS_LINK_HELD))
        finding_mend(f, "it was lost again and again: replace the cable, or see 'ethtool -S' of "
                        "both interfaces");
    else
        finding_mend(f, "compare both logs (journalctl -u torusd), and the addresses of this port "
                        "in torusd.ini");
}

/* The kernel of a machine sends the packets to a neighbour elsewhere: then both seem to be down to each other. */
static void check_diverted(struct doctor *d, uint32_t node, unsigned port)
{
    const char *facts = d->node[node].facts;
    char name[TORUS_PORT_NAME_SIZE], by[FACT_SIZE], mend[FACT_SIZE], end[END_SIZE];
    struct finding *f;

    (void)torus_port_name(d->torus, node, port, name);
    if (!doctor_has_facts(d, node) || !fact_text(facts, fact_name("port.%s.diverted", name), by))
        return;
    f = doctor_find(d, SEVERITY_ERROR, "links", node,
                    "packets to the neighbour at %s do not leave by the cable: %.200s",
                    end_text(d, node, port, end), by);
    f->why = "the link is down, or will be; the neighbour is not the cause";
    (void)fact_text(facts, fact_name("port.%s.mend", name), mend);
    finding_mend(f, "on that machine: %.200s", mend[0] != '\0' ? mend : "ip rule list");
}

/* A link that is up: what it has lost in the last hour. A counter since the start of torusd is not a present fault. */
static void check_losses(struct doctor *d, uint32_t node, const struct torus_link *l)
{
    const uint64_t packets = l->hour_tx_bytes / PACKET_BYTES;
    char end[END_SIZE], span[DOCTOR_SPAN_SIZE];
    struct finding *f;

    if (l->hour_ms == 0) {
        (void)doctor_find(d, SEVERITY_UNSEEN, "losses", node,
                          "its torusd does not report what was lost in the last hour: it may run "
                          "another release");
        return;
    }
    (void)doctor_span(l->hour_ms, span);
    if (l->hour_retransmits >= RETRANSMITS_LEAST &&
        l->hour_retransmits > packets / RETRANSMITS_PART) {
        f = doctor_find(d, SEVERITY_WARNING, "losses", node,
                        "%s has sent %llu packets again, of about %llu, in the last %s",
                        end_text(d, node, l->port, end), (unsigned long long)l->hour_retransmits,
                        (unsigned long long)packets, span);
        f->why = "the cable, an interface or a device in between loses packets, which costs rate";
        finding_mend(f, "on both machines: ethtool -S %s; try another cable",
                     l->interface[0] != '\0' ? l->interface : "INTERFACE");
    }
    if (l->hour_connects >= CONNECTS_MANY) {
        f = doctor_find(d, SEVERITY_WARNING, "losses", node,
                        "%s has come up %u times in the last %s", end_text(d, node, l->port, end),
                        l->hour_connects, span);
        f->why = "the link is lost now and then";
        finding_mend(f, "journalctl -u torusd | grep 'port' shows when and why");
    }
}

/* Checks the link between a node that answered and one that did not. */
static void check_half(struct doctor *d, uint32_t node, unsigned port, uint32_t missing)
{
    const struct torus_link *l = doctor_link(d, node, port);

    if (l != NULL && !is_up(l))
        (void)doctor_find(d, SEVERITY_UNSEEN, "links", node,
                          "a link to %.80s is down, which has not answered: the cause may be there",
                          d->node[missing].host);
}

/* Judges the link at a port, if this is the end with the smaller rank or port. */
static void check_link(struct doctor *d, uint32_t node, unsigned port)
{
    const uint32_t there = torus_neighbour(d->torus, node, port);
    const unsigned back = torus_port_opposite(d->torus, port);
    const struct torus_link *l = doctor_link(d, node, port);

    if (there == TORUS_NO_NODE || there >= d->nodes)
        return;
    if (is_up(l))
        check_losses(d, node, l);
    if (!doctor_has_state(d, there)) {
        check_half(d, node, port, there);
        return;
    }
    if (!doctor_has_state(d, node) || there < node || (there == node && back < port))
        return;
    if (!(is_up(l) && is_up(doctor_link(d, there, back))) && doctor_fault(d, node, port) == NULL &&
        doctor_fault(d, there, back) == NULL)
        find_down(d, node, port, there, back);
}

static void check(struct doctor *d, uint32_t node)
{
    char why[FACT_SIZE];

    if (!doctor_has_state(d, node)) {
        doctor_unseen(d, "links", node, NULL);
        doctor_unseen(d, "losses", node, NULL);
    }
    if (fact_text(d->node[node].facts, "unseen.diverted", why))
        doctor_unseen(d, "links", node, "diverted");
    for (unsigned port = 0; port < torus_ports(d->torus); port++) {
        check_diverted(d, node, port);
        check_link(d, node, port);
    }
}

const struct check check_links = {
    .node = check,
    .subject = {{"links", "all its links are up", false},
                {"losses", "few losses since torusd started, or in the last hour", false}}};
