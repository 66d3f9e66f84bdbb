/* The traces of all nodes, on one clock. */
#pragma once

#include "client/cli/survey/all_nodes.h"

/* A node's trace, or why there is none. */
struct collected_trace {
    const struct torus_trace *trace; /* NULL: there is none of this run */
    bool aligned;      /* its clock has been compared, over links, with that of the first node: */
    int64_t ahead_ns;  /* by so much it is ahead, */
    uint64_t error_ns; /* and so wrong may that be */
};

struct collected_traces {
    struct all_nodes nodes;       /* names and the torus */
    struct torus_survey *survey;  /* of collected_traces_ask() */
    const char *id;               /* of the traced run */
    struct collected_trace *node; /* by rank */
    uint32_t traced;              /* how many nodes have a trace */
    uint64_t began_ns, ended_ns;  /* by the clock of the asked node: of all traces */
    uint64_t error_ns;            /* largest error of any aligned node */
};

/* Asks all nodes for their last trace, and takes those with this id (NULL: with that of the asked node). Returns
 * EXIT_DONE, or another exit code after printing the reason, for instance that nothing has been traced. The caller gives
 * *c to collected_traces_free() in any case. */
int collected_traces_ask(struct cli *cli, const char *id, struct collected_traces *c);
/* The same from answers of nodes, which *c refers to; of *c only `nodes` is set, with the torus and the asked node. Returns
 * 0, or -1 with *e. */
int collected_traces_take(struct collected_traces *c, const struct torus_survey *answers,
                          const char *id, struct error *e);
void collected_traces_free(struct collected_traces *c);

/* A time of a node's clock as nanoseconds after the run began anywhere. */
double collected_traces_time(const struct collected_traces *c, uint32_t rank, uint64_t node_ns);
