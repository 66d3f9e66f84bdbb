/* Faults of links that are down, for instance the wrong port to which a cable leads. router/flooding/faults.c
 * keeps them for all nodes; `status` of each node shows them. */
#pragma once

#include "daemon/lib/schedule/torus.h"

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
    uint32_t found_rank; /* the node at the other end; not for NONE and MTU */
    unsigned found_port;
    /* MTU: bytes sent, none of them acknowledged; 0: large frames do not arrive from there */
    uint32_t sent;
    uint32_t mtu; /* MTU: the MTU of the node that reports the fault; 0 = unknown */
};

/* A fault at a port of a node, as that node reports it. */
struct fault_report {
    uint32_t rank;
    unsigned port;
    struct link_fault fault;
};

/* "mtu", "wrong-cable", "same-side", "loop", "duplicate-rank"; "none". Static. */
const char *link_fault_name(enum link_fault_code code);

/* Writes a text about the fault, with what to do about it. `port` must have a neighbour. LINK_FAULT_TEXT_SIZE
 * bytes are enough. */
void link_fault_text(const struct torus *torus, const struct fault_report *report, char *text,
                     size_t size);

/* Whether another machine has the rank of the reporting node; that machine need not be at one of its
 * cables. */
bool link_fault_is_of_rank(const struct fault_report *report);

/* Whether two faults are equal. */
bool link_fault_same(const struct link_fault *a, const struct link_fault *b);
