/* The interfaces of links: MTU, speed, errors, offloads. */
#include <stdio.h>
#include <string.h>

#include "client/cli/doctor/doctor.h"

#define USUAL_MTU 1500u
#define FAST_MBIT 1000u
#define SLOW_TIMES 10u   /* a cable is slow that has a tenth of what most others have */
#define ERRORS_LEAST 10u /* fewer are not judged */
#define ERRORS_PART 1000000u
#define DROPS_LEAST 1000u
#define DROPS_PART 1000u

static bool number(const struct doctor *d, uint32_t node, const char *interface, const char *key,
                   uint64_t *value)
{
    return fact_number(d->node[node].facts, fact_name("interface.%s.%s", interface, key), value);
}

static bool is(const struct doctor *d, uint32_t node, const char *interface, const char *key,
               const char *value)
{
    return fact_is(d->node[node].facts, fact_name("interface.%s.%s", interface, key), value);
}

/* Returns the name of the interface that a link uses; NULL if its facts are unknown, or it is a loopback interface. */
static const char *interface_of(const struct doctor *d, uint32_t node, unsigned port)
{
    const struct torus_link *l = doctor_link(d, node, port);
    uint64_t mtu;

    if (l == NULL || l->interface[0] == '\0' || strcmp(l->interface, "lo") == 0 ||
        !number(d, node, l->interface, "mtu", &mtu))
        return NULL;
    return l->interface;
}

/* What both ends of a cable must have in common. */
static void check_both_ends(struct doctor *d, uint32_t node, unsigned port, const char *here)
{
    const uint32_t there = torus_neighbour(d->torus, node, port);
    const char *other =
        there < d->nodes ? interface_of(d, there, torus_port_opposite(d->torus, port)) : NULL;
    char at_end[120];
    uint64_t mtu, mtu_there, speed, speed_there;
    struct finding *f;

    if (other == NULL && there < d->nodes)
        (void)doctor_find(d, SEVERITY_UNSEEN, "mtu", node,
                          "the MTU of %.80s, at the other end of a cable, is not known",
                          d->node[there].host);
    if (other == NULL || there < node ||
        (there == node && torus_port_opposite(d->torus, port) < port))
        return;
    (void)snprintf(at_end, sizeof at_end, "%.60s's %.40s", d->node[there].host, other);
    (void)number(d, node, here, "mtu", &mtu);
    (void)number(d, there, other, "mtu", &mtu_there);
    if (mtu != mtu_there) {
        f = doctor_find(
            d, SEVERITY_ERROR, "mtu", node,
            "%s has an MTU of %llu bytes, and %s at the other end of the cable one of %llu", here,
            (unsigned long long)mtu, at_end, (unsigned long long)mtu_there);
        f->peer = there;
        f->why = "packets that one end sends are too large for the other, and are lost";
        finding_mend(f, "on %.60s: ip link set dev %s mtu %llu",
                     d->node[mtu < mtu_there ? node : there].host, mtu < mtu_there ? here : other,
                     (unsigned long long)(mtu < mtu_there ? mtu_there : mtu));
    }
    if (number(d, node, here, "speed_mbit", &speed) &&
        number(d, there, other, "speed_mbit", &speed_there) && speed > 0 && speed_there > 0 &&
        speed != speed_there) {
        f = doctor_find(d, SEVERITY_WARNING, "speed", node,
                        "%s runs at %llu Mbit/s, and %s at the other end of the cable at %llu",
                        here, (unsigned long long)speed, at_end, (unsigned long long)speed_there);
        f->peer = there;
        f->why = "a device between the ends has two speeds, and drops packets when it is full";
        finding_mend(f,
                     "cable the interfaces directly, or set both to one speed: ethtool -s %s "
                     "speed N",
                     here);
    }
}

/* An interface without a carrier has no speed. */
static void unknown_speed(struct doctor *d, const char *check, uint32_t node, const char *interface)
{
    if (!is(d, node, interface, "carrier", "0") && !is(d, node, interface, "state", "down"))
        (void)doctor_find(d, SEVERITY_UNSEEN, check, node, "the driver of %.60s reports no speed",
                          interface);
}

/* Returns what the cards at both ends of a cable can; 0: it is not known. */
static uint64_t speed_of_cards(const struct doctor *d, uint32_t node, unsigned port,
                               const char *here)
{
    const uint32_t there = torus_neighbour(d->torus, node, port);
    const char *other =
        there < d->nodes ? interface_of(d, there, torus_port_opposite(d->torus, port)) : NULL;
    uint64_t most, most_there;

    if (other == NULL || !number(d, node, here, "speed_most_mbit", &most) ||
        !number(d, there, other, "speed_most_mbit", &most_there))
        return 0;
    return most < most_there ? most : most_there;
}

#define SPEEDS_MOST 32u /* different ones that are counted */

struct speeds {
    unsigned count, all;
    struct {
        uint64_t mbit;
        unsigned ends;
    } speed[SPEEDS_MOST];
};

static void count_speed(struct speeds *s, uint64_t mbit)
{
    unsigned i = 0;

    while (i < s->count && s->speed[i].mbit != mbit)
        i++;
    if (i == SPEEDS_MOST)
        return;
    s->count += i == s->count;
    s->speed[i].mbit = mbit;
    s->speed[i].ends++;
    s->all++;
}

/* Returns the highest speed that most ends of cables have at least; 0: none is known. */
static uint64_t usual_speed(struct doctor *d)
{
    struct speeds s = {0};
    uint64_t mbit;

    if (d->usual_known)
        return d->usual_mbit;
    for (uint32_t node = 0; node < d->nodes; node++)
        for (unsigned port = 0; port < torus_ports(d->torus); port++) {
            const char *interface = interface_of(d, node, port);
            if (interface != NULL && number(d, node, interface, "speed_mbit", &mbit) && mbit > 0)
                count_speed(&s, mbit);
        }
    for (unsigned i = 0; i < s.count; i++) {
        unsigned as_fast = 0;
        for (unsigned other = 0; other < s.count; other++)
            as_fast += s.speed[other].mbit >= s.speed[i].mbit ? s.speed[other].ends : 0;
        if (2 * as_fast > s.all && s.speed[i].mbit > d->usual_mbit)
            d->usual_mbit = s.speed[i].mbit;
    }
    d->usual_known = true;
    return d->usual_mbit;
}

/* Finds a cable that came up slower than its two cards allow, or much slower than the other cables. */
static void check_slow_cable(struct doctor *d, uint32_t node, unsigned port, const char *interface,
                             uint64_t speed)
{
    const uint64_t cards = speed_of_cards(d, node, port, interface);
    const uint64_t usual = cards == 0 ? usual_speed(d) : 0;
    const uint32_t there = torus_neighbour(d->torus, node, port);
    struct finding *f;

    if (speed >= cards && SLOW_TIMES * speed > usual)
        return;
    if (there < node || (there == node && torus_port_opposite(d->torus, port) < port))
        return; /* the other end has said it */
    if (cards > 0)
        f = doctor_find(d, SEVERITY_WARNING, "speed", node,
                        "%s runs at %llu Mbit/s, although the cards at both ends of the cable can "
                        "%llu",
                        interface, (unsigned long long)speed, (unsigned long long)cards);
    else
        f = doctor_find(d, SEVERITY_WARNING, "speed", node,
                        "%s runs at %llu Mbit/s, and most other cables at %llu or more", interface,
                        (unsigned long long)speed, (unsigned long long)usual);
    f->peer = there;
    f->why = "a damaged cable often makes both ends choose a lower speed; one slow link slows "
             "every exchange";
    finding_mend(f, "another cable; then ethtool -s %s autoneg on, at both ends", interface);
}

/* Returns the rate of a port as configured, in Mbit/s, if it is above that of its interface; otherwise 0. */
static double nominal_above_speed(const struct doctor *d, uint32_t node, unsigned port)
{
    const struct torus_link *link = doctor_link(d, node, port);
    const char *interface = interface_of(d, node, port);
    uint64_t speed, bps;

    if (interface == NULL || !number(d, node, interface, "speed_mbit", &speed) || speed == 0)
        return 0;
    bps = link->nominal_send_bps > link->nominal_receive_bps ? link->nominal_send_bps
                                                             : link->nominal_receive_bps;
    const double nominal = bps > 0 ? (double)bps / 1e6 : d->node[node].status->link_mbit;
    return (double)speed < 0.95 * nominal ? nominal : 0;
}

static void check_speed(struct doctor *d, uint32_t node, unsigned port, const char *interface)
{
    const double nominal = nominal_above_speed(d, node, port);
    const uint32_t there = torus_neighbour(d->torus, node, port);
    uint64_t speed;
    struct finding *f;

    if (is(d, node, interface, "duplex", "half")) {
        f = doctor_find(d, SEVERITY_ERROR, "speed", node, "%s works in half duplex", interface);
        f->why = "the two directions of the cable disturb each other";
        finding_mend(f, "ethtool -s %s autoneg on, at both ends; else another cable", interface);
    }
    if (!number(d, node, interface, "speed_mbit", &speed) || speed == 0) {
        unknown_speed(d, "speed", node, interface);
        return;
    }
    if (nominal > 0 && there < node &&
        nominal_above_speed(d, there, torus_port_opposite(d->torus, port)) > 0)
        return; /* the other end has said it */
    if (nominal > 0) {
        f = doctor_find(d, SEVERITY_WARNING, "speed", node,
                        "%s runs at %llu Mbit/s; link_mbit says %g", interface,
                        (unsigned long long)speed, nominal);
        f->peer = there;
        f->why = "a damaged cable often makes both ends choose a lower speed; one slow link slows "
                 "every exchange";
        finding_mend(f, "another cable; or correct link_mbit in torusd.ini");
        return;
    }
    check_slow_cable(d, node, port, interface, speed);
}

/* What this end sends and the other one receives, as configured. */
static void check_agreement(struct doctor *d, uint32_t node, unsigned port)
{
    const uint32_t there = torus_neighbour(d->torus, node, port);
    const struct torus_link *here = doctor_link(d, node, port);
    const struct torus_link *other =
        there < d->nodes ? doctor_link(d, there, torus_port_opposite(d->torus, port)) : NULL;
    const double sends = (double)here->nominal_send_bps,
                 takes = other != NULL ? (double)other->nominal_receive_bps : 0;
    struct finding *f;

    if (sends <= 0 || takes <= 0 || (sends > 0.95 * takes && takes > 0.95 * sends))
        return;
    f = doctor_find(d, SEVERITY_WARNING, "speed", node,
                    "link_mbit says that port %.40s sends %g Mbit/s, and that %.60s receives %g by "
                    "its port %.40s",
                    here->name, sends / 1e6, d->node[there].host, takes / 1e6, other->name);
    f->peer = there;
    f->why = "plans use the smaller rate of the two";
    finding_mend(f,
                 "correct %.40s.link_mbit or, on %.60s, %.40s.link_mbit in torusd.ini; then "
                 "systemctl reload torusd",
                 here->name, d->node[there].host, other->name);
}

/* What the link itself carries, whatever its cards say. */
static void check_observed(struct doctor *d, uint32_t node, const struct torus_link *link)
{
    struct finding *f;

    if (strcmp(link->planned_from, "observed") != 0)
        return;
    f = doctor_find(d, SEVERITY_WARNING, "speed", node,
                    "the link at port %.40s carries %g Mbit/s, and should carry more", link->name,
                    (double)link->planned_bps / 1e6);
    f->peer = link->neighbour < d->nodes ? link->neighbour : node;
    f->why = "plans of exchanges give it less to carry; the cable loses packets, a card is in a "
             "slow slot, or something else uses the link";
    finding_mend(f,
                 "torusctl links --json, on both hosts; another cable; another slot of the card");
}

/* One direction of an interface, in the last hour or since torusd started: counters of the kernel begin when the
 * machine starts, and may be due to faults that are long over. */
static void check_side(struct doctor *d, uint32_t node, const char *interface, const char *side,
                       const char *span)
{
    const bool receives = side[0] == 'r';
    uint64_t packets, errors, drops;
    struct finding *f;

    if (!number(d, node, interface, fact_name("hour_%s_packets", side), &packets) ||
        !number(d, node, interface, fact_name("hour_%s_errors", side), &errors) ||
        !number(d, node, interface, fact_name("hour_%s_dropped", side), &drops)) {
        doctor_unseen(d, "interface errors", node, fact_name("interface.%s.hour_ms", interface));
        return;
    }
    if (errors >= ERRORS_LEAST && errors > packets / ERRORS_PART) {
        f = doctor_find(d, SEVERITY_WARNING, "interface errors", node,
                        "%s has counted %llu errors in %llu packets %s in the last %s", interface,
                        (unsigned long long)errors, (unsigned long long)packets,
                        receives ? "received" : "sent", span);
        f->why = "a cable, plug or card is damaged; TCP sends again what is lost";
        finding_mend(f, "another cable; ethtool -S %s shows the kinds of errors", interface);
    }
    if (drops >= DROPS_LEAST && drops > packets / DROPS_PART) {
        f = doctor_find(d, SEVERITY_HINT, "interface errors", node,
                        "%s has dropped %llu of %llu packets %s in the last %s", interface,
                        (unsigned long long)drops, (unsigned long long)packets,
                        receives ? "received" : "to send", span);
        f->why = "its queues are too short, or the processor is too slow";
        finding_mend(f, "ethtool -G %s rx 4096 tx 4096", interface);
    }
}

static void check_errors(struct doctor *d, uint32_t node, const char *interface)
{
    char span[DOCTOR_SPAN_SIZE];
    uint64_t ms;

    if (!number(d, node, interface, "hour_ms", &ms)) {
        doctor_unseen(d, "interface errors", node, fact_name("interface.%s.hour_ms", interface));
        return;
    }
    (void)doctor_span(ms, span);
    check_side(d, node, interface, "rx", span);
    check_side(d, node, interface, "tx", span);
}

static void check_offloads(struct doctor *d, uint32_t node, const char *interface)
{
    static const char *const offloads[][2] = {{"tso", "tso"},        {"gso", "gso"},
                                              {"gro", "gro"},        {"scatter_gather", "sg"},
                                              {"rx_checksum", "rx"}, {"tx_checksum", "tx"}};
    char off[128] = "", command[128] = "";
    size_t used = 0, written = 0, told = 0;

    if (!is(d, node, interface, "physical", "yes"))
        return;
    for (size_t i = 0; i < sizeof offloads / sizeof *offloads; i++) {
        told += is(d, node, interface, offloads[i][0], "on");
        if (!is(d, node, interface, offloads[i][0], "off"))
            continue;
        used += (size_t)snprintf(off + used, sizeof off - used, "%s%s", used > 0 ? ", " : "",
                                 offloads[i][0]);
        written +=
            (size_t)snprintf(command + written, sizeof command - written, " %s on", offloads[i][1]);
    }
    if (used == 0 && told == 0)
        (void)doctor_find(d, SEVERITY_UNSEEN, "offloads", node,
                          "the driver of %.60s reports no offloads", interface);
    if (used == 0)
        return;
    struct finding *f = doctor_find(d, SEVERITY_HINT, "offloads", node,
                                    "%s works without these offloads: %s", interface, off);
    f->why = "the processor does the work of the card, which costs rate on fast links";
    finding_mend(f, "ethtool -K %s%s", interface, command);
}

static void check_large_frames(struct doctor *d, uint32_t node, const char *interface)
{
    uint64_t mtu, speed;

    if (!number(d, node, interface, "mtu", &mtu) || mtu > USUAL_MTU ||
        !is(d, node, interface, "physical", "yes"))
        return;
    if (!number(d, node, interface, "speed_mbit", &speed))
        unknown_speed(d, "large frames", node, interface);
    if (speed < FAST_MBIT)
        return;
    struct finding *f = doctor_find(d, SEVERITY_HINT, "large frames", node,
                                    "%s has an MTU of %llu bytes at %llu Mbit/s", interface,
                                    (unsigned long long)mtu, (unsigned long long)speed);
    f->why = "fewer and larger packets cost less processor time";
    finding_mend(f, "at both ends of the cable: ip link set dev %s mtu 9000", interface);
}

static const char *const checks[] = {"mtu", "speed", "interface errors", "offloads",
                                     "large frames"};

static void nothing_seen(struct doctor *d, uint32_t node, const char *fact)
{
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        doctor_unseen(d, checks[i], node, fact);
}

/* Says that nothing is known about the interface of a port. */
static void unknown_interface(struct doctor *d, uint32_t node, const struct torus_link *l)
{
    char why[FACT_SIZE];

    if (l->interface[0] != '\0' &&
        (fact_text(d->node[node].facts, "unseen.interfaces", why) || l->state == TORUS_LINK_UP)) {
        nothing_seen(d, node, "interfaces");
        return;
    }
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        (void)doctor_find(d, SEVERITY_UNSEEN, checks[i], node,
                          l->interface[0] != '\0' ? "there is no interface %s%.40s"
                                                  : "which interface port %s uses is not known",
                          l->interface[0] != '\0' ? "" : l->name, l->interface);
}

static void check_ports(struct doctor *d, uint32_t node)
{
    for (unsigned port = 0; port < torus_ports(d->torus); port++) {
        const struct torus_link *l = doctor_link(d, node, port);
        const char *interface = interface_of(d, node, port);
        if (l == NULL || strcmp(l->interface, "lo") == 0)
            continue; /* no cable */
        if (interface == NULL) {
            unknown_interface(d, node, l);
            continue;
        }
        check_both_ends(d, node, port, interface);
        check_speed(d, node, port, interface);
        check_agreement(d, node, port);
        check_observed(d, node, l);
        check_errors(d, node, interface);
        check_offloads(d, node, interface);
        check_large_frames(d, node, interface);
    }
}

static void check(struct doctor *d, uint32_t node)
{
    if (!doctor_has_state(d, node))
        nothing_seen(d, node, NULL);
    else if (!doctor_has_facts(d, node))
        nothing_seen(d, node, "interfaces");
    else
        check_ports(d, node);
}

const struct check check_interfaces = {
    .node = check,
    .subject = {{"mtu", "both ends of its cables have the same MTU", false},
                {"speed", "the speed of its cables", false},
                {"interface errors",
                 "few errors or drops since torusd started, or in the last hour", false},
                {"offloads", "its network cards do what they can", false},
                {"large frames", "the size of frames suits its cables", false}}};
