/* The contents of a picture of a schedule, before it is laid out (svg.h): the combined messages, step by step, or the
 * load of every channel. */
#ifndef TORUSD_CLI_DRAWING_H
#define TORUSD_CLI_DRAWING_H

#include "daemon/schedule/algorithm.h"

/* Limits of a picture. Larger pictures cannot be read, and browsers fail on them. */
#define DRAWING_MOST_NODES 1024u
#define DRAWING_MOST_ARROWS 40000u
#define DRAWING_MOST_GROUPS 8u

/* The part of a schedule that is shown. */
struct drawing_choice {
    bool load;         /* the load of every channel in all steps together */
    const char *steps; /* "3" or "0-7"; NULL: all steps */
    uint32_t source;   /* only the blocks of this node; TORUS_NO_NODE: all blocks */
    uint32_t node; /* only messages that this node sends, relays or receives, or TORUS_NO_NODE */
};

/* An arrow: a combined message or, in a picture of the load, everything that crosses a channel. */
struct drawn_message {
    struct leg leg;
    uint32_t start;    /* node */
    uint64_t segments; /* number of shown segments of blocks in the message; 0: it is not shown */
    /* Shown messages of several hops that share a channel have different lanes, which are drawn side by side. */
    uint32_t lane;
};

/* A torus with the messages of one step. A picture of the load has one. */
struct drawn_step {
    uint32_t step;
    size_t first, count;  /* its messages, shown or not */
    size_t shown;         /* number of shown messages */
    uint64_t least, most; /* segments in a shown message */
    uint32_t lanes;       /* highest lane + 1 */
    uint32_t crowd;       /* most messages on any channel, shown or not; 0 for a load */
};

struct drawing {
    const struct torus *torus; /* torus and algorithm belong to the caller */
    const struct algorithm *algorithm;
    struct drawing_choice choice;
    struct drawn_message *message; /* by (step, class of the start, port, hops, start) */
    size_t messages;
    struct drawn_step *step; /* steps with anything to show */
    uint32_t steps;
    uint32_t last_step; /* of the schedule */
    uint64_t most;      /* most segments in a shown message */
    size_t shown;       /* number of shown messages */
    /* By node: its group. The nodes of a group send the same messages, relative to their places. */
    uint32_t *group;
    uint32_t groups; /* number of groups; 0 if there are more than DRAWING_MOST_GROUPS */
    /* By node * ports + port: messages that cross the channel in the step of drawing_count_crossing(). */
    uint32_t *crossing;
};

/* Collects the messages of a verified schedule. Returns 0 with *d, which the caller frees with drawing_free(), or -1
 * with *e: the choice is not possible (ERROR_USAGE), the picture would be too large (ERROR_REFUSED; the text says what
 * can be chosen instead), or memory is short. */
int drawing_make(struct drawing *d, const struct torus *t, const struct algorithm *a,
                 const struct drawing_choice *choice, struct error *e);
void drawing_free(struct drawing *d);

/* Counts all messages of a step in d->crossing, shown or not. Returns the most on any channel. */
uint32_t drawing_count_crossing(struct drawing *d, const struct drawn_step *step);

#endif
