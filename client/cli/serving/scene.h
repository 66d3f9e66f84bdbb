/* What `torusctl serve` knows of a torus: what is observed, the machines, and the history of an hour. Without I/O. What
 * other machines say is cut and made valid text, never more. */
#pragma once

#include "client/cli/serving/history.h"
#include "client/cli/survey/observed.h"

#define SCENE_GAP_SECONDS 10.0 /* between surveys: nobody has looked, and rates are not known */
#define SCENE_NAME_SIZE 101u

struct scene {
    struct observed seen;
    char (*name)[SCENE_NAME_SIZE]; /* by rank, also of nodes that are down now; "": not known */
    struct history history;        /* by rank and port what was sent; the last one is the sum */
    bool new_torus;                /* the survey is the first one of this torus */
};

/* Takes over a survey, which becomes empty in any case. `seconds` is a steady clock. If the survey is about another
 * torus, what was known is forgotten. Returns 0, or -1 if memory is short: the scene is then empty. */
int scene_take(struct scene *s, struct all_nodes *survey, double seconds);
void scene_free(struct scene *s);

/* The name of a node for people: "alpha" or "node 7". Valid until the next call, or as long as *s. */
const char *scene_name(const struct scene *s, uint32_t rank);
