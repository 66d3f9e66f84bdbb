/* What surveys, one after another, say about a torus: its links with their rates, what runs, and what is wrong. Without
 * I/O. */
#pragma once

#include "client/cli/survey/all_nodes.h"

/* --- the ends of links --- */

/* One end of a link: the channel through which its node sends. */
struct link_end {
    const struct torus_link *link; /* valid as long as the survey; NULL: the node has not told it */
    double sent, received;         /* bytes a second; below 0: not known */
    double resent;                 /* packets a second; below 0: not known */
};

/* What a direction of a link can carry. All zero at first. */
struct link_capacity {
    double value;   /* bytes a second; 0: not known */
    bool nominal;   /* `value` is link_mbit, otherwise the fastest rate that was seen */
    double fastest; /* the fastest rate that was seen so far */
};

/* --- what runs --- */

#define RUNS_MOST 64u
#define RUN_ID_SIZE 101u
#define RUN_STATES (TORUS_STATE_IN_DOUBT + 1u)

enum run_kind { RUN_EXCHANGE, RUN_GROUP, RUN_COPY };

/* All texts but `id` are valid as long as the survey. */
struct run {
    enum run_kind kind;
    char id[RUN_ID_SIZE]; /* of a group: its name */
    const char *what;     /* the algorithm, the name of the group, or the target of the copy */
    bool ended;           /* at all nodes that know it */
    uint32_t nodes;       /* that know it */
    uint32_t root;        /* the node that was asked; TORUS_RANK_NONE: nobody */
    uint64_t done, total; /* bytes at all nodes; of a copy as its root counts; total 0: not known */
    double rate;          /* bytes a second that all nodes receive; below 0: not known */
    double part;          /* that is done, 0 to 1; below 0: not known */
    double left;          /* seconds; below 0: not known */
    double first_part, first_seconds; /* when the run was seen first */

    /* Exchanges: */
    uint32_t states[RUN_STATES];    /* how many nodes are in each state */
    uint64_t age_ms, round, rounds; /* the lowest round */
    const char *reason;             /* of a failure; "": none */

    /* Groups: */
    uint32_t open;                /* nodes on which it is open */
    uint64_t calls, calls_done;   /* made by the fastest member; done by the slowest */
    double call_rate;             /* calls a second; below 0: not known */
    const char *missing, *avoids; /* as in torus_group_info */

    /* Copies: */
    enum torus_copy_phase phase;
    const char *waits_for; /* nodes, for people; "": none */
};

struct runs {
    struct run run[RUNS_MOST]; /* first those that are under way */
    size_t count, left_out;
};

/* "exchange", "group" or "copy". */
const char *run_kind_name(enum run_kind kind);

/* The state of a run for people: "running", or "running 12, done 4"; "open"; the phase of a copy. Returns `out`. */
const char *run_state(const struct run *r, char *out, size_t size);

/* Whether a run has failed or fails at any node, as far as nodes say. */
bool run_has_failed(const struct run *r);

/* Whether it is known that its client has ended it. */
bool run_was_cancelled(const struct run *r);

/* What there is to say about a run that failed, waits or avoids links, for people; "": nothing. Returns `out`. */
const char *run_reason(const struct run *r, char *out, size_t size);

/* An exchange, group or copy at one node; NULL: it is of another kind, or the node does not know it or has not
 * answered. */
const struct torus_activity *run_exchange_at(const struct run *r, const struct all_nodes *c,
                                             uint32_t rank);
const struct torus_group_info *run_group_at(const struct run *r, const struct all_nodes *c,
                                            uint32_t rank);
const struct torus_copy_activity *run_copy_at(const struct run *r, const struct all_nodes *c,
                                              uint32_t rank);

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

/* Whether a survey is about another torus than the previous ones, or the first one. */
bool observed_is_new(const struct observed *o, const struct all_nodes *survey);
/* Takes over a survey, which becomes empty in any case, and computes rates since the previous one. `seconds` is a
 * steady clock; over more than `longest_gap` seconds rates are not known (0: always). If the survey is about another
 * torus, what was known is forgotten. Returns 0, or -1 if memory is short: nothing is known then. */
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
