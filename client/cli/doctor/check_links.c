/* Links that are down or work badly, and cables that lead elsewhere. Each link is judged once, with what both ends say. */
#include <stdio.h>
#include <string.h>

#include "client/cli/doctor/judge.h"
#include "client/cli/doctor/known_facts.h"

#define PACKET_BYTES 1448u     /* of data, in a packet of the usual size */
#define RETRANSMITS_LEAST 100u /* fewer are not judged */
#define RETRANSMITS_PART 1000u /* one of so many packets */
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

static const struct torus_link_fault *fault_at(const struct doctor *d, uint32_t node, unsigned port)
{
    const struct torus_status *s = doctor_has_state(d, node) ? d->node[node].status : NULL;

    for (size_t i = 0; s != NULL && i < s->link_fault_count; i++)
        if (s->link_faults[i]->node == node && s->link_faults[i]->port == port)
            return s->link_faults[i];
    return NULL;
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

/* A cable that leads elsewhere, as the node at one end has found out. */
static void find_fault(struct doctor *d, uint32_t node, const struct torus_link_fault *fault)
{
    const uint32_t expected = torus_neighbour(d->torus, node, fault->port);
    const bool known = fault->found_node < d->nodes && fault->found_port < torus_ports(d->torus);
    char end[END_SIZE], found[END_SIZE] = "", right[END_SIZE] = "";
    struct finding *f;

    (void)end_text(d, node, fault->port, end);
    if (known)
        (void)end_text(d, fault->found_node, fault->found_port, found);
    if (expected < d->nodes)
        (void)end_text(d, expected, torus_port_opposite(d->torus, fault->port), right);
    if (strcmp(fault->code, "wrong-cable") == 0 || strcmp(fault->code, "same-side") == 0 ||
        strcmp(fault->code, "loop") == 0) {
        f = doctor_find(d, SEVERITY_ERROR, "cables", node, "the cable in %s leads to %s, not to %s",
                        end, known ? found : "another port", right);
        f->why = "the link is down until the cable leads where the torus has it";
        finding_mend(f, "move that end of the cable to %s", right);
    } else if (strcmp(fault->code, "duplicate-rank") == 0) {
        f = doctor_find(d, SEVERITY_ERROR, "ranks", node,
                        "another machine has the rank %u, too, as %s shows", fault->found_node,
                        end);
        f->why = "two machines with one rank take each other's place, and links go up and down";
        finding_mend(f, "give each machine a rank of its own in torusd.ini, then: systemctl "
                        "restart torusd");
    } else {
        f = doctor_find(d, SEVERITY_ERROR, strcmp(fault->code, "mtu") == 0 ? "mtu" : "cables", node,
                        "%s: %.300s", end, fault->text);
        f->why = "small packets pass and large ones are lost, so that the link cannot be used";
        finding_mend(f, "set the same MTU at both ends: ip link set dev INTERFACE mtu 1500");
    }
}

/* A link that is up. */
static void check_quality(struct doctor *d, uint32_t node, const struct torus_link *l)
{
    const uint64_t packets = l->tx_bytes / PACKET_BYTES;
    char end[END_SIZE];
    struct finding *f;

    if (l->retransmits >= RETRANSMITS_LEAST && l->retransmits > packets / RETRANSMITS_PART) {
        f = doctor_find(
            d, SEVERITY_WARNING, "losses", node, "%s has sent %u packets again, of about %llu",
            end_text(d, node, l->port, end), l->retransmits, (unsigned long long)packets);
        f->why = "the cable, an interface or a device in between loses packets, which costs rate";
        finding_mend(f, "on both machines: ethtool -S %s; try another cable",
                     l->interface[0] != '\0' ? l->interface : "INTERFACE");
    }
    if (l->connects >= CONNECTS_MANY) {
        f = doctor_find(d, SEVERITY_WARNING, "losses", node,
                        "%s has come up %u times since torusd started",
                        end_text(d, node, l->port, end), l->connects);
        f->why = "the link is lost now and then";
        finding_mend(f, "journalctl -u torusd | grep 'port' shows when and why");
    }
}

/* Judges the link at a port, if this is the end with the smaller rank or port. */
static void check_link(struct doctor *d, uint32_t node, unsigned port, uint32_t *up, uint32_t *down)
{
    const uint32_t there = torus_neighbour(d->torus, node, port);
    const unsigned back = torus_port_opposite(d->torus, port);
    const struct torus_link *l = doctor_link(d, node, port);

    if (there == TORUS_NO_NODE || there >= d->nodes)
        return;
    if (is_up(l))
        check_quality(d, node, l);
    if (there < node || (there == node && back < port))
        return;
    const struct torus_link *m = doctor_link(d, there, back);
    if (is_up(l) && is_up(m)) {
        (*up)++;
        return;
    }
    if (d->node[node].missing[0] != '\0' || d->node[there].missing[0] != '\0')
        return; /* that a node does not answer has been said */
    (*down)++;
    if (fault_at(d, node, port) == NULL && fault_at(d, there, back) == NULL)
        find_down(d, node, port, there, back);
}

void check_links(struct doctor *d)
{
    uint32_t up = 0, down = 0;

    if (d->torus == NULL)
        return;
    for (uint32_t node = 0; node < d->nodes; node++) {
        for (unsigned port = 0; port < torus_ports(d->torus); port++) {
            check_diverted(d, node, port);
            check_link(d, node, port, &up, &down);
        }
        for (size_t i = 0; doctor_has_state(d, node) && i < d->node[node].status->link_fault_count;
             i++)
            if (d->node[node].status->link_faults[i]->node == node &&
                d->node[node].status->link_faults[i]->port < torus_ports(d->torus))
                find_fault(d, node, d->node[node].status->link_faults[i]);
    }
    if (down == 0 && up > 0)
        (void)doctor_find(d, SEVERITY_FINE, "links", FINDING_NOBODY, "%u links are up", up);
}
