/* The bounds of surveys: how many queries a node passes on, and how many bytes of answers an asker keeps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/schedule/torus.h"
#include "daemon/torusd/survey/survey.h"

/* --- the queries that a node has heard lately ---
 *
 * Finds those that it has passed on already, and limits how many it
 * passes on, for each port and for each asker. */

#define HEARD_KEPT 32u  /* for each port; the next one replaces the oldest of its port */
#define HEARD_RATE 16u  /* costs of the queries that are taken from a port in a second, */
#define HEARD_BURST 32u /* and at once after a pause */
#define HEARD_ASKER 8u  /* costs of the queries of one asker that are taken in a second */

struct heard_query {
    uint64_t id;
    uint64_t at;         /* when it was heard; 0: there is none */
    uint64_t parts_left; /* parts of answers that may still be passed on */
    uint32_t asker;
    unsigned port; /* where it was heard first: the way to the asker */
    enum survey_kind kind;
    bool owes; /* this node has not answered yet */
};

struct heard {
    unsigned ports;
    struct heard_query *query; /* HEARD_KEPT for each port */
    unsigned next[TORUS_MAX_PORTS];
    double room[TORUS_MAX_PORTS]; /* costs that may be taken at once now, as of `at` */
    uint64_t at[TORUS_MAX_PORTS];
};

/* Returns 0, or -1 if there is no memory. heard_free() frees what *h holds. */
int heard_init(struct heard *h, unsigned ports);
void heard_free(struct heard *h);

/* The query with this id of this asker; NULL: not heard, or too long ago. */
struct heard_query *heard_find(struct heard *h, uint32_t asker, uint64_t id);
/* Notes a query that was not found. Returns it, or NULL: there are too many queries, so it must be dropped. */
struct heard_query *heard_add(struct heard *h, unsigned port, const struct peer_survey_query *query,
                              uint64_t now);

/* --- the answers that an asker has collected, with a bound on the bytes of all of them together --- */

struct collected_node {
    uint8_t *bytes;
    uint32_t length;
    uint32_t parts, have; /* bit i: part i has arrived */
    uint64_t at;          /* when it was complete */
    bool complete, too_large;
};

struct collected {
    uint32_t nodes;
    struct collected_node *node; /* by rank; NULL: nothing is collected */
    size_t total;                /* bytes of memory for answers */
};

/* Begins to collect. Returns 0, or -1 if there is no memory. */
int collected_begin(struct collected *c, uint32_t nodes);
/* Frees all answers. */
void collected_end(struct collected *c);

/* Stores a part, whose numbers and length have been checked. Parts that have arrived, or that contradict earlier
 * ones, are dropped. `now` is the time that is noted. Returns whether the answer of that node is complete now, and was not before. */
bool collected_add(struct collected *c, const struct peer_survey_answer *part, uint64_t now);

/* Fills *out with the answer of a node, if it is complete. */
void collected_view(const struct collected *c, uint32_t rank, struct survey_node *out);
