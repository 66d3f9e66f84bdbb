/* What `torusctl top` knows of a torus: what is observed, the machines, and restarts of daemons. Without I/O. */
#pragma once

#include <jansson.h>

#include "client/cli/survey/observed.h"

#define TOP_HOST_SIZE 65u
#define TOP_NAME_SIZE (TOP_HOST_SIZE + 20)

/* Facts from the last answer of a node. They are shown while the node does not answer. */
struct top_known {
    char host[TOP_HOST_SIZE]; /* for people; "": not known */
    uint64_t pid, uptime_ms;
};

#define TOP_POINTS 512u

/* What all links carried together between two surveys. */
struct top_point {
    double seconds; /* of the later survey, by the steady clock of top_model_take() */
    double rate;    /* bytes a second */
};

struct top_model {
    struct observed seen;
    struct top_point point[TOP_POINTS]; /* the last ones, as a ring */
    uint64_t points;                    /* so far; the newest one is before `points` % TOP_POINTS */
    struct top_known *known;            /* by rank; also about nodes that are down */
    uint64_t surveys;                   /* taken so far */
    uint64_t restarts;                  /* of daemons, seen so far */
    uint32_t restarted;                 /* the node of the last one */
};

/* Takes over a survey, which becomes empty in any case. `seconds` is a steady clock. If the survey is about another
 * torus, what was known is forgotten. Returns 0, or -1 if memory is short: the model is then empty. */
int top_model_take(struct top_model *m, struct all_nodes *survey, double seconds);
void top_model_free(struct top_model *m);

/* The name of a node's machine; "" if it was never known. */
const char *top_model_host(const struct top_model *m, uint32_t rank);

/* Writes the name of a node for people, "alpha (node 7)" or "node 7". Returns `out`. */
const char *top_model_name(const struct top_model *m, uint32_t rank, char *out, size_t size);

/* Writes what is wrong, and where, in one line. */
void top_model_fault_text(const struct top_model *m, const struct fault *f, char *out, size_t size);

/* The rate of all links together that belongs to a time: of the survey nearest to it, not further than `most` seconds
 * away; below 0: none is known. */
double top_model_rate_at(const struct top_model *m, double seconds, double most);

/* The time of the newest rate; below 0: none is known. */
double top_model_newest(const struct top_model *m);

/* What a node sends and receives on all its links, in bytes a second; below 0: not known. */
void top_model_node_rates(const struct top_model *m, uint32_t rank, double *sent, double *received);

/* The lines of `torusctl top --json`. Return a line, or NULL if memory is short. */
json_t *top_model_value(const struct top_model *m);
json_t *top_error_value(const struct torus_error *e);
