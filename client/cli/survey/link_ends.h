/* The ends of links as their nodes describe them in a survey, with rates since the survey before. */
#pragma once

#include "client/cli/survey/all_nodes.h"

/* One end of a link: the channel by which its node sends. */
struct link_end {
    const struct torus_link *link; /* valid as long as the survey; NULL: the node has not told it */
    double sent, received;         /* bytes a second; below 0: not known */
    double resent;                 /* packets a second; below 0: not known */
};

/* Returns the seconds between two answers of a node by its own clock, or 0 if they cannot be compared: one of them is
 * missing, or the daemon has been restarted. `before` may be empty. */
double link_ends_elapsed(const struct all_nodes *now, const struct all_nodes *before,
                         uint32_t rank);

/* Fills the ends of a node, by port. `before` are its ends in the survey before, whose links are still valid; NULL: there
 * was none. Rates are not known if `elapsed` is 0, or if the link was not up all the time, because counters begin again
 * with each connection. */
void link_ends_fill(struct link_end *ends, const struct all_nodes *now, uint32_t rank,
                    const struct link_end *before, double elapsed);

/* What a direction of a link can carry. All zero at first. */
struct link_capacity {
    double value;   /* bytes a second; 0: not known */
    bool nominal;   /* `value` is link_mbit, otherwise the fastest rate that was seen */
    double fastest; /* that was seen so far */
};

/* Updates *c from a survey, and from the rates of all ends, by rank and port. */
void link_capacity_update(struct link_capacity *c, const struct all_nodes *now,
                          const struct link_end *ends);
