/* What surveys, one after another, say of a torus: its links with their rates, what runs, and what is wrong. Without
 * I/O. */
#pragma once

#include "client/cli/survey/link_ends.h"
#include "client/cli/survey/runs.h"

enum link_state {
    LINK_NONE,    /* no cable belongs there */
    LINK_UNKNOWN, /* neither end has answered */
    LINK_UP,
    LINK_DOWN, /* an end says that the link is not up */
};

/* A link, seen from one of its ends. */
struct observed_link {
    enum link_state state;
    uint32_t neighbour;
    unsigned port_there;
    const struct link_end *here, *there; /* NULL only if the state is LINK_NONE */
    double away,
        towards; /* load of the directions from and to this end, 1: full; below 0: not known */
};

enum fault_kind {
    FAULT_NODE,  /* it has not answered */
    FAULT_CABLE, /* it leads elsewhere, or loses large packets */
    FAULT_LINK,  /* it is not up, and both nodes can be reached */
};

struct fault {
    enum fault_kind kind;
    uint32_t node;
    unsigned port;    /* of a link or cable */
    const char *text; /* of a cable; valid as long as the survey */
};

struct observed {
    struct all_nodes now; /* the last survey; `state` is NULL before the first one */
    unsigned ports;
    struct link_end *ends; /* by rank and port */
    struct link_capacity capacity;
    struct runs runs;
    size_t answered, links, links_up;
    struct fault *faults; /* nodes, then cables and links by rank */
    size_t fault_count;
};

/* Whether a survey is about another torus than the former ones, or the first one. */
bool observed_is_new(const struct observed *o, const struct all_nodes *survey);
/* Takes over a survey, which becomes empty in any case, and computes rates since the one before. `seconds` is a steady
 * clock; over more than `longest_gap` seconds rates are not known (0: always). If the survey is about another torus, what
 * was known is forgotten. Returns 0, or -1 if memory is short: nothing is known then. */
int observed_take(struct observed *o, struct all_nodes *survey, double longest_gap, double seconds);
void observed_free(struct observed *o);

/* The end at a port of a node, which must exist. */
const struct link_end *observed_end(const struct observed *o, uint32_t rank, unsigned port);
/* The link at a port of a node. */
struct observed_link observed_link(const struct observed *o, uint32_t rank, unsigned port);
/* The larger load of both directions; below 0: not known. */
double observed_load(const struct observed_link *l);
/* Why a link is down, as one of its ends says: "no carrier", or the name of its state. */
const char *observed_reason(const struct observed_link *l);
