/* A survey and the torus that it is about, for commands that show all nodes. */
#pragma once

#include "client/cli/terminal/cli.h"
#include "daemon/lib/schedule/torus.h"

struct all_nodes {
    struct torus torus;
    uint32_t initiator;         /* the rank of the node that was asked */
    struct torus_survey *state; /* TORUS_SURVEY_STATE */
    /* NULL, or torus.nodes names: "alpha", or "alpha (node 3)" if two nodes have the same name, or "node 3" if the
     * name is not known. */
    char **name;
    char **missing; /* NULL, or why each node has not answered: "" if it has */
};

/* Asks the daemon, to which the client is connected, and all nodes. Returns 0, or -1 with *e. The caller gives *c to
 * all_nodes_free() in any case. */
int all_nodes_try(const struct cli *cli, struct all_nodes *c, struct torus_error *e);
/* Asks the daemon, to which the client is connected, and all nodes. Returns an exit code; on failure what went wrong
 * has been printed. The caller gives *c to all_nodes_free() in any case. */
int all_nodes_ask(struct cli *cli, struct all_nodes *c);
/* Makes *c from the status of the asked daemon and its survey, for callers that ask without waiting. Takes ownership of
 * the survey in any case. Returns 0, or -1 with *e; the caller gives *c to all_nodes_free() in any case. */
int all_nodes_make(struct all_nodes *c, const struct torus_status *status,
                   struct torus_survey *survey, struct torus_error *e);
void all_nodes_free(struct all_nodes *c);

/* Whether a node can be reached, and has not answered in time: that is not a sign of a fault. */
bool all_nodes_late(const struct all_nodes *c, uint32_t rank);
/* Whether a node has answered with its state. */
bool all_nodes_answered(const struct all_nodes *c, uint32_t rank);
/* Returns the name of a node for people; "node 7" also if there is no such node. Valid until the next call, or as long
 * as *c. */
const char *all_nodes_name(const struct all_nodes *c, uint32_t rank);
/* Why there is no answer of a node, for people, and what its neighbours know of it: "has not answered within 3 s (2 of
 * 2 links to it are up)"; "" if there is one. Valid as long as *c. */
const char *all_nodes_missing(const struct all_nodes *c, uint32_t rank);

/* Adds "rank", "host" (null if not known), "coordinates" and "outcome". Returns 0, or another value if memory is
 * short. */
int all_nodes_set_node(json_t *o, const struct all_nodes *c, uint32_t rank);
