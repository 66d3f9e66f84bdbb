/* What `torusctl top` knows of a torus: the last survey, and rates from it and the survey before. Without I/O. */
#ifndef TORUSD_CLI_TOP_MODEL_H
#define TORUSD_CLI_TOP_MODEL_H

#include "client/cli/survey/link_ends.h"
#include "client/cli/survey/runs.h"

#define TOP_HOST_SIZE 65u
#define TOP_NAME_SIZE (TOP_HOST_SIZE + 20)

/* Facts from the last answer of a node. They are shown while the node does not answer. */
struct top_known {
    char host[TOP_HOST_SIZE]; /* for people; "": not known */
    uint64_t pid, uptime_ms;
};

enum top_link_state {
    TOP_LINK_NONE,    /* no cable belongs there */
    TOP_LINK_UNKNOWN, /* neither end has answered */
    TOP_LINK_UP,
    TOP_LINK_DOWN, /* an end says that the link is not up */
};

/* A link, seen from one of its ends. */
struct top_link {
    enum top_link_state state;
    uint32_t neighbour;
    unsigned port_there;
    const struct link_end *here, *there; /* NULL only if the state is TOP_LINK_NONE */
    double away,
        towards; /* load of the directions from and to this end, 1: full; below 0: not known */
};

enum top_fault_kind {
    TOP_FAULT_NODE,  /* it has not answered */
    TOP_FAULT_LINK,  /* it is not up, and both nodes can be reached */
    TOP_FAULT_CABLE, /* it leads elsewhere, or loses large packets */
};

struct top_fault {
    enum top_fault_kind kind;
    uint32_t node;
    unsigned port;    /* of a link or cable */
    const char *text; /* of a cable; valid as long as the survey */
};

struct top_model {
    struct all_nodes now;    /* `state` is NULL before the first survey */
    struct link_end *ends;   /* by rank and port */
    struct top_known *known; /* by rank; also about nodes that are down */
    struct link_capacity capacity;
    size_t answered, links, links_up;
    struct runs runs;
    struct top_fault *faults;
    size_t fault_count;
    uint64_t surveys;   /* taken so far */
    uint64_t restarts;  /* of daemons, seen so far */
    uint32_t restarted; /* the node of the last one */
};

/* Takes over a survey, which becomes empty in any case, and computes rates since the one before. `seconds` is a steady
 * clock. If the survey is about another torus, what was known is forgotten. Returns 0, or -1 if memory is short: the
 * model is then empty. */
int top_model_take(struct top_model *m, struct all_nodes *survey, double seconds);
void top_model_free(struct top_model *m);

/* The link at a port of a node. */
struct top_link top_model_link(const struct top_model *m, uint32_t rank, unsigned port);

/* The larger load of both directions; below 0: not known. */
double top_link_load(const struct top_link *l);

/* The name of a node's machine; "" if it was never known. */
const char *top_model_host(const struct top_model *m, uint32_t rank);

/* Writes the name of a node for people, "alpha (node 7)" or "node 7". Returns `out`. */
const char *top_model_name(const struct top_model *m, uint32_t rank, char *out, size_t size);

/* Writes what is wrong, and where, in one line. */
void top_model_fault_text(const struct top_model *m, const struct top_fault *f, char *out,
                          size_t size);

/* What a node sends and receives on all its links, in bytes a second; below 0: not known. */
void top_model_node_rates(const struct top_model *m, uint32_t rank, double *sent, double *received);

#endif
