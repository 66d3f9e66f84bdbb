/* Cables that lead elsewhere, as the nodes at their ends have found out. The advice about them is found and worded as
 * by 'torusctl discover'. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/doctor/doctor.h"
#include "daemon/lib/cabling/cabling.h"

#define END_SIZE 160u
#define NAME_SIZE 64u

/* --- names --- */

/* The interface at a port, if no other port of the node has it; otherwise "port +0". */
static const char *interface_name(const struct doctor *d, uint32_t node, unsigned port,
                                  char text[NAME_SIZE])
{
    const struct torus_link *l = doctor_link(d, node, port);
    char name[TORUS_PORT_NAME_SIZE];
    bool own = l != NULL && l->interface[0] != '\0';

    for (unsigned other = 0; own && other < torus_ports(d->torus); other++) {
        const struct torus_link *o = other != port ? doctor_link(d, node, other) : NULL;
        own = o == NULL || strcmp(o->interface, l->interface) != 0;
    }
    if (own)
        (void)snprintf(text, NAME_SIZE, "%.60s", l->interface);
    else
        (void)snprintf(text, NAME_SIZE, "port %s", torus_port_name(d->torus, node, port, name));
    return text;
}

/* "alpha's eth1 (port +0)", "alpha's port +0" */
static const char *end_text(const struct doctor *d, uint32_t node, unsigned port,
                            char text[END_SIZE])
{
    char interface[NAME_SIZE], name[TORUS_PORT_NAME_SIZE];

    (void)interface_name(d, node, port, interface);
    if (strncmp(interface, "port ", 5) == 0)
        (void)snprintf(text, END_SIZE, "%.80s's %s", d->node[node].host, interface);
    else
        (void)snprintf(text, END_SIZE, "%.80s's %s (port %s)", d->node[node].host, interface,
                       torus_port_name(d->torus, node, port, name));
    return text;
}

/* --- what leads where --- */

static bool leads_elsewhere(const struct torus_link_fault *f)
{
    return f != NULL && (strcmp(f->code, "wrong-cable") == 0 || strcmp(f->code, "same-side") == 0 ||
                         strcmp(f->code, "loop") == 0);
}

/* The place of a port in arrays by node and port. */
static size_t place_of(const struct doctor *d, uint32_t node, unsigned port)
{
    return (size_t)node * torus_ports(d->torus) + port;
}

/* Whether the fault names a port at the other end that exists. */
static bool found_end(const struct doctor *d, const struct torus_link_fault *f)
{
    return leads_elsewhere(f) && f->found_node < d->nodes &&
           f->found_port < torus_ports(d->torus) &&
           torus_neighbour(d->torus, f->found_node, f->found_port) != TORUS_NO_NODE;
}

/* All cables as the nodes have found them, in the words of the module that finds the least re-plugging. */
struct plugs {
    struct cabling_input input;
    struct cabling_host *host;
    struct cabling_interface *interface; /* by node and port; those without a link have no name */
    struct cabling_end *heard;
    char (*name)[NAME_SIZE];
    bool *wrong; /* by node and port: a fault is about it */
};

static void plugs_free(struct plugs *p)
{
    free(p->host);
    free(p->interface);
    free(p->heard);
    free(p->name);
    free(p->wrong);
}

static void connect(const struct doctor *d, struct plugs *p, uint32_t node, unsigned port,
                    uint32_t there, unsigned back)
{
    const size_t here = place_of(d, node, port);

    p->heard[here] = (struct cabling_end){there, back};
    p->interface[here].heard = &p->heard[here];
    p->interface[here].heard_count = 1;
}

static void connect_wrong(const struct doctor *d, struct plugs *p)
{
    for (uint32_t node = 0; node < d->nodes; node++)
        for (unsigned port = 0; port < torus_ports(d->torus); port++) {
            const struct torus_link_fault *f = doctor_fault(d, node, port);
            if (!found_end(d, f))
                continue;
            p->wrong[place_of(d, node, port)] = true;
            p->wrong[place_of(d, f->found_node, f->found_port)] = true;
            connect(d, p, node, port, f->found_node, f->found_port);
            connect(d, p, f->found_node, f->found_port, node, port);
        }
}

/* Cables without a fault lead where they should: links that are down are judged elsewhere. */
static void connect_others(const struct doctor *d, struct plugs *p)
{
    for (uint32_t node = 0; node < d->nodes; node++)
        for (unsigned port = 0; port < torus_ports(d->torus); port++) {
            const uint32_t there = torus_neighbour(d->torus, node, port);
            const unsigned back = torus_port_opposite(d->torus, port);
            if (there < d->nodes && !p->wrong[place_of(d, node, port)] &&
                !p->wrong[place_of(d, there, back)])
                connect(d, p, node, port, there, back);
        }
}

static int plugs_make(const struct doctor *d, struct plugs *p)
{
    const unsigned ports = torus_ports(d->torus);
    const size_t ends = (size_t)d->nodes * ports;

    *p = (struct plugs){.host = calloc(d->nodes, sizeof *p->host),
                        .interface = calloc(ends, sizeof *p->interface),
                        .heard = calloc(ends, sizeof *p->heard),
                        .name = calloc(ends, sizeof *p->name),
                        .wrong = calloc(ends, sizeof *p->wrong)};
    if (p->host == NULL || p->interface == NULL || p->heard == NULL || p->name == NULL ||
        p->wrong == NULL)
        return -1;
    for (uint32_t node = 0; node < d->nodes; node++) {
        for (unsigned port = 0; port < ports; port++) {
            const size_t at = place_of(d, node, port);
            const bool used = torus_neighbour(d->torus, node, port) != TORUS_NO_NODE;
            p->interface[at] =
                (struct cabling_interface){.name = interface_name(d, node, port, p->name[at]),
                                           .carrier = used,
                                           .excluded = !used,
                                           .port = used ? (int)port : -1};
        }
        p->host[node] = (struct cabling_host){.name = d->node[node].host,
                                              .interface = &p->interface[(size_t)node * ports],
                                              .interfaces = ports,
                                              .rank = node};
    }
    p->input = (struct cabling_input){.host = p->host, .hosts = d->nodes, .wanted = d->torus};
    connect_wrong(d, p);
    connect_others(d, p);
    return 0;
}

/* --- findings --- */

/* Appends "; alpha's eth1 (port +0) leads to ..., not to ..." if that is so. */
static void add_leads(const struct doctor *d, const struct plugs *p, struct finding *f,
                      struct cabling_end end)
{
    const size_t used = strlen(f->what);
    char here[END_SIZE], found[END_SIZE], right[END_SIZE];

    if (end.host >= d->nodes || end.interface >= torus_ports(d->torus) ||
        !p->wrong[place_of(d, end.host, end.interface)])
        return;
    const struct cabling_end *heard = &p->heard[place_of(d, end.host, end.interface)];
    (void)snprintf(f->what + used, sizeof f->what - used, "%s%s leads to %s, not to %s",
                   used > 0 ? "; " : "", end_text(d, end.host, end.interface, here),
                   end_text(d, heard->host, heard->interface, found),
                   end_text(d, torus_neighbour(d->torus, end.host, end.interface),
                            torus_port_opposite(d->torus, end.interface), right));
}

/* Finds a fault of a cable for which there is a move. */
static void find_move(struct doctor *d, const struct plugs *p, const struct cabling_result *r,
                      uint32_t number)
{
    const struct cabling_move *m = &r->move[number];
    struct finding *f = doctor_find(d, SEVERITY_ERROR, "cables", m->from.host, "%s", "");

    f->peer = m->to.host < d->nodes ? m->to.host : FINDING_NOBODY;
    add_leads(d, p, f, m->from);
    add_leads(d, p, f, m->kind == CABLING_SWAP ? m->to : m->stays);
    f->why = "the links are down until the cables lead where the torus has them";
    (void)cabling_move_text(r, &p->input, number, f->mend, sizeof f->mend);
}

/* Whether all that is wrong can be mended by moving plugs. */
static bool is_crossing(const struct cabling_result *r)
{
    bool moves = r->finding == CABLING_NEAR && r->moves > 0;

    for (uint32_t i = 0; moves && i < r->moves; i++)
        moves = r->move[i].kind == CABLING_SWAP || r->move[i].kind == CABLING_MOVE_END;
    return moves;
}

/* Says what to do about all cables together. Returns false if that is not clear. */
static bool find_crossed(struct doctor *d)
{
    struct cabling_result result;
    struct plugs p;
    struct error e;
    bool found = false;

    if (d->nodes <= CABLING_HOSTS_MOST && plugs_make(d, &p) == 0) {
        if (cabling_find(&result, &p.input, &e) == 0) {
            found = is_crossing(&result);
            for (uint32_t i = 0; found && i < result.moves; i++)
                find_move(d, &p, &result, i);
            cabling_free(&result);
        }
        plugs_free(&p);
    } else if (d->nodes <= CABLING_HOSTS_MOST) {
        plugs_free(&p);
    }
    return found;
}

/* One cable that leads elsewhere; both its ends may have said so. */
static void find_cable(struct doctor *d, uint32_t node, const struct torus_link_fault *fault)
{
    const uint32_t expected = torus_neighbour(d->torus, node, fault->port);
    const struct torus_link_fault *other =
        found_end(d, fault) ? doctor_fault(d, fault->found_node, fault->found_port) : NULL;
    char here[END_SIZE], found[END_SIZE] = "another port", right[END_SIZE] = "another machine";
    struct finding *f;

    if (found_end(d, other) && other->found_node == node && other->found_port == fault->port &&
        place_of(d, fault->found_node, fault->found_port) < place_of(d, node, fault->port))
        return;
    (void)end_text(d, node, fault->port, here);
    if (found_end(d, fault))
        (void)end_text(d, fault->found_node, fault->found_port, found);
    if (expected < d->nodes)
        (void)end_text(d, expected, torus_port_opposite(d->torus, fault->port), right);
    f = doctor_find(d, SEVERITY_ERROR, "cables", node, "the cable in %s leads to %s, not to %s",
                    here, found, right);
    if (found_end(d, fault) && fault->found_node != node)
        f->peer = fault->found_node;
    f->why = "the link is down until the cable leads where the torus has it";
    finding_mend(f, "move that end of the cable to %s", right);
}

/* Whether the MTUs of both ends are known to differ, which check_interfaces() says. */
static bool mtu_differs(const struct doctor *d, uint32_t node, unsigned port)
{
    const uint32_t there = torus_neighbour(d->torus, node, port);
    const struct torus_link *l = doctor_link(d, node, port),
                            *m = doctor_link(d, there, torus_port_opposite(d->torus, port));
    uint64_t here, far;

    return l != NULL && m != NULL &&
           fact_number(d->node[node].facts, fact_name("interface.%s.mtu", l->interface), &here) &&
           fact_number(d->node[there].facts, fact_name("interface.%s.mtu", m->interface), &far) &&
           here != far;
}

/* Finds a fault other than a cable that leads elsewhere. */
static void find_other(struct doctor *d, uint32_t node, const struct torus_link_fault *fault)
{
    const uint32_t there = torus_neighbour(d->torus, node, fault->port);
    const bool mtu = strcmp(fault->code, "mtu") == 0;
    char here[END_SIZE], other[END_SIZE] = "its other end";
    struct finding *f;

    (void)end_text(d, node, fault->port, here);
    if (there < d->nodes)
        (void)end_text(d, there, torus_port_opposite(d->torus, fault->port), other);
    if (strcmp(fault->code, "duplicate-rank") == 0) {
        f = doctor_find(d, SEVERITY_ERROR, "ranks", node,
                        "another machine has the rank %u, too, as %s shows", fault->found_node,
                        here);
        f->why = "two machines with one rank take each other's place, and links go up and down";
        finding_mend(f, "give each machine a rank of its own in torusd.ini, then: systemctl "
                        "restart torusd");
        return;
    }
    if (mtu && mtu_differs(d, node, fault->port))
        return;
    if (mtu)
        f = doctor_find(d, SEVERITY_ERROR, "mtu", node,
                        "packets of full size are lost between %s and %s", here, other);
    else
        f = doctor_find(d, SEVERITY_ERROR, "cables", node, "%s: %.200s", here, fault->text);
    f->peer = there < d->nodes && there != node ? there : FINDING_NOBODY;
    f->why = "small packets pass and large ones are lost, so that the link cannot be used";
    finding_mend(f, "set the same MTU at both ends: ip link set dev INTERFACE mtu 1500");
}

static void check(struct doctor *d)
{
    bool crossed = false;

    for (uint32_t node = 0; node < d->nodes; node++) {
        if (!doctor_has_state(d, node)) {
            doctor_unseen(d, "cables", node, NULL);
            doctor_unseen(d, "ranks", node, NULL);
        }
        for (unsigned port = 0; port < torus_ports(d->torus); port++)
            crossed |= leads_elsewhere(doctor_fault(d, node, port));
    }
    const bool said = crossed && find_crossed(d);
    for (uint32_t node = 0; node < d->nodes; node++)
        for (unsigned port = 0; port < torus_ports(d->torus); port++) {
            const struct torus_link_fault *fault = doctor_fault(d, node, port);
            if (fault == NULL || (said && leads_elsewhere(fault)))
                continue;
            if (leads_elsewhere(fault))
                find_cable(d, node, fault);
            else
                find_other(d, node, fault);
        }
}

const struct check check_cables = {
    .all = check,
    .subject = {{"cables", "no cable of it is known to lead elsewhere", false},
                {"ranks", "no other machine is known to have its rank", false}}};
