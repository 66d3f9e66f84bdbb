#include "daemon/torusd/router/faults.h"

#include <stdio.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/router/internal.h"

/* --- texts --- */

const char *link_fault_name(enum link_fault_code code)
{
    static const char *const names[LINK_FAULTS] = {
        [LINK_FAULT_NONE] = "none",
        [LINK_FAULT_MTU] = "mtu",
        [LINK_FAULT_WRONG_CABLE] = "wrong-cable",
        [LINK_FAULT_SAME_SIDE] = "same-side",
        [LINK_FAULT_LOOP] = "loop",
        [LINK_FAULT_DUPLICATE_RANK] = "duplicate-rank",
    };

    return code < LINK_FAULTS ? names[code] : "unknown";
}

/* Whether another machine has the rank of the reporting node; that machine need not be at one of its
 * cables. */
static bool link_fault_is_of_rank(const struct fault_report *report)
{
    return report->fault.code == LINK_FAULT_DUPLICATE_RANK &&
           report->fault.found_rank == report->rank && report->fault.found_port == report->port;
}

/* Whether two faults are equal. */
static bool link_fault_same(const struct link_fault *a, const struct link_fault *b)
{
    return a->code == b->code &&
           (a->code == LINK_FAULT_NONE || a->code == LINK_FAULT_MTU ||
            (a->found_rank == b->found_rank && a->found_port == b->found_port));
}

static const char *fault_explanation(const struct torus *torus, const struct fault_report *report)
{
    const unsigned here = torus_port_dim(torus, report->port);
    const unsigned there = torus_port_dim(torus, report->fault.found_port);

    switch (report->fault.code) {
    case LINK_FAULT_SAME_SIDE:
        return torus->graph[here] == NULL && torus->graph[there] == NULL
                   ? ": a + port must be cabled to a - port; "
                   : ": one end of a cable must dial, and the other one listen; ";
    case LINK_FAULT_LOOP:
        return ", of the same machine; ";
    case LINK_FAULT_DUPLICATE_RANK:
        return ", but another machine has that rank, too: correct its rank; ";
    default:
        return "; ";
    }
}

static void mtu_text(const struct fault_report *report, const char *here, uint32_t neighbour,
                     char *text, size_t size)
{
    const struct link_fault *f = &report->fault;
    char mtu[32] = "", lost[80] = "frames of full size do not arrive from there";

    if (f->mtu > 0)
        (void)snprintf(mtu, sizeof mtu, " (%u at node %u)", f->mtu, report->rank);
    if (f->sent > 0)
        (void)snprintf(lost, sizeof lost, "sent %u bytes, none acknowledged", f->sent);
    (void)snprintf(text, size, "node %u port %s to node %u: %s: do both ends have the same MTU%s?",
                   report->rank, here, neighbour, lost, mtu);
}

void link_fault_text(const struct torus *torus, const struct fault_report *report, char *text,
                     size_t size)
{
    const struct link_fault *f = &report->fault;
    const uint32_t neighbour = torus_neighbour(torus, report->rank, report->port);
    char here[TORUS_PORT_NAME_SIZE], found[TORUS_PORT_NAME_SIZE], expected[TORUS_PORT_NAME_SIZE];

    (void)torus_port_name(torus, report->rank, report->port, here);
    if (f->code == LINK_FAULT_NONE) {
        text[0] = '\0';
    } else if (f->code == LINK_FAULT_MTU) {
        mtu_text(report, here, neighbour, text, size);
    } else if (link_fault_is_of_rank(report)) {
        (void)snprintf(text, size,
                       "two machines have rank %u, reports the one whose port %s is cabled to node "
                       "%u: correct the rank of one of them",
                       report->rank, here, neighbour);
    } else {
        (void)snprintf(
            text, size, "node %u port %s is cabled to node %u port %s%sit expects node %u port %s",
            report->rank, here, f->found_rank,
            torus_port_name(torus, f->found_rank, f->found_port, found),
            fault_explanation(torus, report), neighbour,
            torus_port_name(torus, neighbour, torus_port_opposite(torus, report->port), expected));
    }
}

/* Faults of cables, here and elsewhere. A node floods the faults that it finds at its own ports that are
 * down, and floods them again every RESTATE while they last; other nodes keep them for a while. Faults inform
 * people and decide nothing, and most of them come from peers that have proved nothing. Therefore they are
 * bounded: a node keeps few reports, and makes at most one report per port in the time GATHER. */

#define GATHER (500 * MILLISECONDS)
#define RESTATE (30 * SECONDS)
#define KEPT (2 * RESTATE + 10 * SECONDS)
#define LASTS RESTATE /* how long a fault lasts if it is not found again */

/* --- own ports --- */

static bool is_stated(const struct port *port)
{
    return link_fault_same(&port->fault.now, &port->fault.stated);
}

static void state_soon(struct router *r, uint64_t now)
{
    if (r->faults.state_at > now + GATHER)
        r->faults.state_at = now + GATHER;
}

/* Records a fault of the cable at a port of this node, to be stated to all nodes. */
static void faults_found(struct router *r, unsigned i, const struct link_fault *fault)
{
    struct port *port = &r->port[i];

    port->fault.found_at = router_now(r);
    if (link_fault_same(&port->fault.now, fault))
        return;
    port->fault.now = *fault;
    if (!is_stated(port))
        state_soon(r, port->fault.found_at);
}

void faults_of_mtu(struct router *r, unsigned port, const struct connection_stat *stat)
{
    const struct link_fault fault = {.code = LINK_FAULT_MTU,
                                     .sent = stat->unacked < UINT32_MAX ? (uint32_t)stat->unacked
                                                                        : UINT32_MAX,
                                     .mtu = stat->mtu};

    faults_found(r, port, &fault);
}

void faults_of_rank(struct router *r, unsigned port)
{
    const struct link_fault fault = {
        .code = LINK_FAULT_DUPLICATE_RANK, .found_rank = r->rank, .found_port = port};

    faults_found(r, port, &fault);
}

void faults_clear(struct router *r, unsigned port)
{
    faults_found(r, port, &(struct link_fault){.code = LINK_FAULT_NONE});
}

void faults_sighted(struct router *r, unsigned i, const struct sighting *s)
{
    const struct topology_entry *known;
    struct link_fault fault = {.found_rank = s->rank, .found_port = s->port};

    if (r->port[i].link != NULL || s->rank >= r->torus->nodes || s->port >= torus_ports(r->torus))
        return;
    known = &r->topology.entry[s->rank];
    if (s->rank == r->rank)
        fault.code = s->boot == r->boot ? LINK_FAULT_LOOP : LINK_FAULT_DUPLICATE_RANK;
    else if (s->rank == r->port[i].neighbour && s->port == torus_port_opposite(r->torus, i))
        fault.code = LINK_FAULT_NONE;
    else if (known->hops < r->torus->nodes && known->boot != 0 && known->boot != s->boot)
        fault.code = LINK_FAULT_DUPLICATE_RANK;
    else if (torus_port_dials(r->torus, s->rank, s->port) == torus_port_dials(r->torus, r->rank, i))
        fault.code = LINK_FAULT_SAME_SIDE;
    else
        fault.code = LINK_FAULT_WRONG_CABLE;
    /* The beacon is from the right neighbour, which clears all faults except one of the MTU. */
    if (fault.code != LINK_FAULT_NONE || r->port[i].fault.now.code > LINK_FAULT_MTU)
        faults_found(r, i, &fault);
}

/* --- saying --- */

static void send_fault(struct router *r, int to, int except, const struct known_fault *k,
                       uint32_t left)
{
    const struct peer_message message = {.kind = PEER_LINK_FAULT,
                                         .link_fault = {.rank = k->report.rank,
                                                        .port = k->report.port,
                                                        .boot = k->boot,
                                                        .number = k->number,
                                                        .code = k->report.fault.code,
                                                        .found_rank = k->report.fault.found_rank,
                                                        .found_port = k->report.fault.found_port,
                                                        .left = left,
                                                        .sent = k->report.fault.sent,
                                                        .mtu = k->report.fault.mtu}};

    if (to >= 0)
        router_send(r, (unsigned)to, &message);
    else
        router_flood(r, except, &message);
}

static struct known_fault own_statement(struct router *r, unsigned i)
{
    return (struct known_fault){.report = {r->rank, i, r->port[i].fault.stated},
                                .boot = r->boot,
                                .number = ++r->faults.number};
}

void faults_tell_all(struct router *r, unsigned to)
{
    const uint64_t now = router_now(r);

    for (unsigned i = 0; i < torus_ports(r->torus); i++)
        if (r->port[i].fault.stated.code != LINK_FAULT_NONE) {
            const struct known_fault k = own_statement(r, i);
            send_fault(r, (int)to, -1, &k, r->torus->nodes);
        }
    for (unsigned i = 0; i < FAULTS_KNOWN; i++)
        if (r->faults.known[i].until > now)
            send_fault(r, (int)to, -1, &r->faults.known[i], r->torus->nodes);
}

/* Logs a fault of a port, unless it is of the MTU, which the port's own reason describes better. */
static void log_fault(const struct router *r, unsigned i)
{
    const struct fault_report report = {r->rank, i, r->port[i].fault.stated};
    char text[LINK_FAULT_TEXT_SIZE];

    if (report.fault.code <= LINK_FAULT_MTU)
        return;
    link_fault_text(r->torus, &report, text, sizeof text);
    log_warning("%s", text);
}

static void state_fault(struct router *r, unsigned i)
{
    const bool news = !is_stated(&r->port[i]);

    r->port[i].fault.stated = r->port[i].fault.now;
    if (news)
        log_fault(r, i);
    const struct known_fault k = own_statement(r, i);
    send_fault(r, -1, -1, &k, r->torus->nodes);
}

void faults_tick(struct router *r, uint64_t now)
{
    bool restate = now >= r->faults.restate_at;

    if (now < r->faults.state_at && !restate)
        return;
    r->faults.state_at = ROUTER_NEVER;
    r->faults.restate_at = ROUTER_NEVER;
    for (unsigned i = 0; i < torus_ports(r->torus); i++) {
        struct port *port = &r->port[i];
        if (port->fault.now.code != LINK_FAULT_NONE && now >= port->fault.found_at + LASTS)
            port->fault.now.code = LINK_FAULT_NONE;
        if (!is_stated(port) || (restate && port->fault.now.code != LINK_FAULT_NONE))
            state_fault(r, i);
        if (port->fault.now.code != LINK_FAULT_NONE)
            r->faults.restate_at = now + RESTATE;
    }
}

uint64_t faults_deadline(const struct router *r)
{
    return r->faults.state_at < r->faults.restate_at ? r->faults.state_at : r->faults.restate_at;
}

/* --- hearing --- */

/* Returns the entry that keeps this fault, or one that it may replace. */
static struct known_fault *find_fault_entry(struct router *r, const struct peer_link_fault *m)
{
    struct known_fault *oldest = &r->faults.known[0];

    for (unsigned i = 0; i < FAULTS_KNOWN; i++) {
        struct known_fault *k = &r->faults.known[i];
        if (k->until > 0 && k->report.rank == m->rank && k->report.port == m->port &&
            k->boot == m->boot)
            return k;
        if (k->until < oldest->until)
            oldest = k;
    }
    *oldest = (struct known_fault){0};
    return oldest;
}

int faults_heard(struct router *r, unsigned port, const struct peer_link_fault *m, struct error *e)
{
    const struct link_fault fault = {(enum link_fault_code)m->code, m->found_rank, m->found_port,
                                     m->sent, m->mtu};
    struct known_fault *k;

    if (m->rank >= r->torus->nodes || m->port >= torus_ports(r->torus) ||
        torus_neighbour(r->torus, m->rank, m->port) == TORUS_NO_NODE || m->code >= LINK_FAULTS ||
        m->found_rank >= r->torus->nodes || m->found_port >= torus_ports(r->torus) ||
        m->left > r->torus->nodes)
        return error_set(e, ERROR_PROTOCOL, "a report of a fault that the link cannot have");
    if (m->rank == r->rank)
        return 0;
    k = find_fault_entry(r, m);
    if (k->until > 0 && m->number <= k->number)
        return 0;
    *k = (struct known_fault){.report = {m->rank, m->port, fault},
                              .boot = m->boot,
                              .number = m->number,
                              .until = router_now(r) + KEPT};
    if (m->left > 1)
        send_fault(r, -1, (int)port, k, m->left - 1);
    return 0;
}

/* --- telling people --- */

/* A report is outdated if its node has restarted since, or if the link is up. */
static bool is_current(const struct router *r, const struct known_fault *k, uint64_t now)
{
    const struct topology_entry *known = &r->topology.entry[k->report.rank];

    if (k->until <= now || k->report.fault.code == LINK_FAULT_NONE ||
        known->hops >= r->torus->nodes)
        return false;
    if (link_fault_is_of_rank(&k->report))
        return true; /* two machines have the rank: the links of both may be up, and which of the two is
                      * known changes */
    return known->boot == k->boot &&
           !topology_link_up(&r->topology, k->report.rank, k->report.port);
}

bool router_fault(const struct router *r, unsigned index, struct fault_report *report)
{
    const uint64_t now = router_now(r);

    for (unsigned i = 0; i < torus_ports(r->torus); i++)
        if (r->port[i].fault.now.code != LINK_FAULT_NONE && index-- == 0) {
            *report = (struct fault_report){r->rank, i, r->port[i].fault.now};
            return true;
        }
    for (unsigned i = 0; i < FAULTS_KNOWN; i++)
        if (is_current(r, &r->faults.known[i], now) && index-- == 0) {
            *report = r->faults.known[i].report;
            return true;
        }
    return false;
}

void router_sighted(struct router *r, unsigned port, const struct sighting *s)
{
    r->now = router_now(r);
    if (!r->stopping && r->port[port].neighbour != TORUS_NO_NODE)
        faults_sighted(r, port, s);
}

void router_unsighted(struct router *r, unsigned i)
{
    const enum link_fault_code code = r->port[i].fault.now.code;

    r->now = router_now(r);
    if (!r->stopping &&
        (code == LINK_FAULT_WRONG_CABLE || code == LINK_FAULT_SAME_SIDE || code == LINK_FAULT_LOOP))
        faults_clear(r, i);
}
