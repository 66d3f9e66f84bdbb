/* Stands for the groups of a daemon (daemon/group/group.h), without any other node: every member does
 * as the one program that there is, and each gets back what it sends. It keeps the rules that the
 * real ones keep towards a program, and checks what it is given as they do. */
#ifndef TORUSD_TESTS_UNIT_STANDIN_GROUP_H
#define TORUSD_TESTS_UNIT_STANDIN_GROUP_H

#include "daemon/group/group.h"
#include "daemon/schedule/torus.h"

struct groups {
    struct torus torus;
    uint32_t rank;
    const bool *gone;    /* by node: left out by groups that shrink; NULL: none is */
    bool holds;          /* calls do not end for now */
    bool holds_open;     /* nor does opening, */
    const char *missing; /* as these are missing, so many; NULL: none is known */
    uint32_t missing_count;
    struct group *first;
    unsigned groups;                   /* open */
    unsigned closed, abandoned, calls; /* so far */
    struct group_call last;            /* without what it points to */
    uint64_t last_counts;              /* sum of its arrays */
    struct error why;                  /* it was abandoned */
};

/* What is due: groups are opened, calls end. */
void standin_run(struct groups *all);

/* All groups fail. */
void standin_fail(struct groups *all, enum error_code code, const char *text);

#endif
