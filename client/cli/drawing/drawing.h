/* The contents of a picture of a schedule, before it is laid out (svg.h): the combined messages, step by step, or the
 * load of every channel. */
#pragma once

#include "client/cli/drawing/node_positions.h"
#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/damage.h"

/* Limits of a picture. Larger pictures cannot be read, and browsers fail on them. */
#define DRAWING_MOST_NODES 1024u
#define DRAWING_MOST_ARROWS 40000u
#define DRAWING_MOST_MESSAGES 2000000u /* collected for a part of a torus */
#define DRAWING_MOST_GROUPS 8u

/* The part of a schedule that is shown. */
struct drawing_choice {
    bool load;                  /* the load of every channel in all steps together */
    const struct damage *rates; /* of the channels; NULL: all have the full rate */
    const char *steps;          /* "3" or "0-7"; NULL: all steps */
    uint32_t source;            /* only the blocks of this node; TORUS_NO_NODE: all blocks */
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
    struct svg_layout layout;      /* of the part of the torus that is shown */
    struct drawn_message *message; /* by (step, class of the start, port, hops, start) */
    size_t messages;
    struct drawn_step *step; /* steps with anything to show */
    uint32_t steps;
    uint32_t last_step;                 /* of the schedule */
    uint32_t first_chosen, last_chosen; /* steps */
    bool left_out;                      /* the last of these are not shown, for lack of space */
    uint64_t most;                      /* segments in any shown message */
    size_t shown;                       /* messages */
    uint32_t *group;    /* by node; those of one group send the same messages, as seen from where
                         * they are, in the whole schedule */
    uint32_t groups;    /* how many there are; 0 if more than DRAWING_MOST_GROUPS */
    uint32_t *crossing; /* node * ports + port: how many messages cross the channel in the step
                          * last counted */
};

/* Collects the messages. Returns 0 with *d to be freed by drawing_free(); -1 with *e set and
 * nothing to free: the choice is not possible (ERROR_USAGE), a step alone has more than fits into a
 * picture (ERROR_REFUSED, saying what can be chosen instead), no memory. The schedule must have
 * been verified. */
int drawing_make(struct drawing *d, const struct torus *t, const struct algorithm *a,
                 const struct drawing_choice *choice, struct error *e);
void drawing_free(struct drawing *d);

/* Counts all messages of a step in d->crossing, shown or not. Returns the most on any channel. */
uint32_t drawing_count_crossing(struct drawing *d, const struct drawn_step *step);
