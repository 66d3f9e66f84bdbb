#include "daemon/torusd/router/topology/fault.h"

#include <stdio.h>

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

bool link_fault_is_of_rank(const struct fault_report *report)
{
    return report->fault.code == LINK_FAULT_DUPLICATE_RANK &&
           report->fault.found_rank == report->rank && report->fault.found_port == report->port;
}

bool link_fault_same(const struct link_fault *a, const struct link_fault *b)
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
