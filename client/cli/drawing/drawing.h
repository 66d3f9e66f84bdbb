/* What a picture of a schedule shows, before it is laid out (svg.h): the combined messages, step by
 * step, or the load of every channel. */
#ifndef TORUSD_CLI_DRAWING_H
#define TORUSD_CLI_DRAWING_H

#include "daemon/schedule/algorithm.h"

/* The largest picture. Larger ones cannot be read, and browsers fail on them. */
#define DRAWING_MOST_NODES 1024u
#define DRAWING_MOST_ARROWS 40000u
#define DRAWING_MOST_GROUPS 8u

/* Which part of a schedule is shown. */
struct drawing_choice {
    bool load;         /* what every channel carries in all of the steps together */
    const char *steps; /* "3" or "0-7"; NULL = all of them */
    uint32_t source;   /* only this node's blocks; TORUS_NO_NODE = those of all */
    uint32_t node;     /* only what this node sends, relays and receives, or TORUS_NO_NODE */
};

/* An arrow: a combined message; in a picture of the load all that crosses a channel. */
struct drawn_message {
    struct leg leg;
    uint32_t start;    /* node */
    uint64_t segments; /* how many segments of blocks it holds, of those that are shown; 0: it is
                        * not shown */
    uint32_t lane; /* among the shown ones of several hops: no other one that shares a channel has
                    * the same */
};

/* A torus with the messages of one step; in a picture of the load the only one. */
struct drawn_step {
    uint32_t step;
    size_t first, count;  /* its messages, shown or not */
    size_t shown;         /* how many are */
    uint64_t least, most; /* segments in a shown one */
    uint32_t lanes;       /* highest lane + 1 */
    uint32_t crowd;       /* most messages on any channel, shown or not; of a load 0 */
};

struct drawing {
    const struct torus *torus; /* borrowed, as the algorithm is */
    const struct algorithm *algorithm;
    struct drawing_choice choice;
    struct drawn_message *message; /* by (step, class of the start, port, hops, start) */
    size_t messages;
    struct drawn_step *step; /* those with anything to show */
    uint32_t steps;
    uint32_t last_step; /* of the schedule */
    uint64_t most;      /* segments in any shown message */
    size_t shown;       /* messages */
    uint32_t *group;    /* by node; those of one group send the same messages, as seen from where
                         * they are, in the whole schedule */
    uint32_t groups;    /* how many there are; 0 if more than DRAWING_MOST_GROUPS */
    uint32_t *crossing; /* node * ports + port: how many messages cross the channel in the step
                          * last counted */
};

/* Collects the messages. Returns 0 with *d to be freed by drawing_free(); -1 with *e set and
 * nothing to free: the choice is not possible (ERROR_USAGE), there would be more than fits into a
 * picture (ERROR_REFUSED, saying what can be chosen instead), no memory. The schedule must have
 * been verified. */
int drawing_make(struct drawing *d, const struct torus *t, const struct algorithm *a,
                 const struct drawing_choice *choice, struct error *e);
void drawing_free(struct drawing *d);

/* Counts in d->crossing all messages of a step, those not shown included. Returns the most on any
 * channel. */
uint32_t drawing_count_crossing(struct drawing *d, const struct drawn_step *step);

#endif
