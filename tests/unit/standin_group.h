/* A stand-in for the groups of a daemon (daemon/torusd/group/group.h), without other nodes: all members do the same as the
 * only program, which receives what it sends. It keeps the rules of real groups towards a program, and checks its
 * arguments as they do. */
#pragma once

#include "daemon/lib/schedule/torus.h"
#include "daemon/torusd/group/group.h"

#define STANDIN_SENDER 5u /* of messages that are received from any member */

struct groups {
    struct torus torus;
    uint32_t rank;
    const bool *gone;    /* by node: left out by groups that shrink; NULL: none is */
    bool holds;          /* calls do not end for now */
    bool holds_messages; /* messages do not */
    bool holds_open;     /* nor does opening, */
    const char *missing; /* because this many of these nodes are missing; NULL: none is known */
    uint32_t missing_count;
    struct group *first;
    unsigned groups;                   /* open */
    unsigned closed, abandoned, calls; /* so far */
    struct group_call last;            /* without the memory that it points to */
    uint64_t last_counts;              /* sum of its arrays */
    struct error why;                  /* it was abandoned */
};

/* Does the due work: opens groups, ends calls. */
void standin_run(struct groups *all);

/* Makes all groups fail. */
void standin_fail(struct groups *all, enum error_code code, const char *text);
