/* What is known to be wrong with a link that is down: which cable leads where. Kept by router/flooding/faults.c for all
 * nodes, and shown in `status` of each. */
#ifndef TORUSD_ROUTER_TOPOLOGY_FAULT_H
#define TORUSD_ROUTER_TOPOLOGY_FAULT_H

#include "daemon/schedule/torus.h"

enum link_fault_code {
    LINK_FAULT_NONE,
    LINK_FAULT_MTU,            /* frames of full size do not pass */
    LINK_FAULT_WRONG_CABLE,    /* the cable leads to another port than the torus has there */
    LINK_FAULT_SAME_SIDE,      /* two + ports, or two - ports, are cabled to each other */
    LINK_FAULT_LOOP,           /* the cable leads to another port of the same node */
    LINK_FAULT_DUPLICATE_RANK, /* two nodes have the rank that was found at the other end */
    LINK_FAULTS
};

#define LINK_FAULT_TEXT_SIZE 240u

struct link_fault {
    enum link_fault_code code;
    uint32_t found_rank; /* what is at the other end, but for NONE and MTU */
    unsigned found_port;
    uint32_t sent; /* MTU: bytes of which none was acknowledged; 0 if nothing has come from there */
    uint32_t mtu;  /* MTU: of the node that says so; 0 = unknown */
};

/* Of a port of a node, as that node says. */
struct fault_report {
    uint32_t rank;
    unsigned port;
    struct link_fault fault;
};

/* "mtu", "wrong-cable", "same-side", "loop", "duplicate-rank"; "none". Static. */
const char *link_fault_name(enum link_fault_code code);

/* In words, with what to do. `port` must have a neighbour. */
void link_fault_text(const struct torus *torus, const struct fault_report *report, char *text,
                     size_t size);

/* Two machines have the rank of the node that says so, and the other one need not be at its cables. */
bool link_fault_is_of_rank(const struct fault_report *report);

bool link_fault_same(const struct link_fault *a, const struct link_fault *b);

#endif
