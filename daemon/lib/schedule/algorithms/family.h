/* Families of algorithms, with one member for every number (degree): cccube-q5 is the CC-cube in 5
 * packets. A member is named "<base>-q<degree>", and algorithm_find() knows these names, too;
 * degree 1 is the base itself. "<base>-best" stands for the member that is the fastest for blocks
 * of a given size. */
#pragma once

#include <stdbool.h>

#include "daemon/lib/schedule/algorithm.h"

/* The costs of a schedule as numbers, which the cost model (client/theory/cost.h) turns into
 * time. */

/* Counts of steps, blocks and hops. They need not be whole numbers (log5 N startups). A count that
 * a paper's model leaves out is 0. */
struct cost_counts {
    double startups;
    double transmission; /* blocks on the busiest channel, summed over steps */
    double rearranged;   /* blocks that a node moves in its memory */
    double hops;         /* sum over steps of the longest leg */
    bool overlapped;     /* hops are pipelined with the transmission: each block takes the longer
                          * of tp and its transmission time, and `hops` times the shorter of the
                          * two is added once */
};

struct family {
    const struct algorithm *base; /* degree 1; defines what a member does not define itself */
    const char *best;             /* "cccube-best" */
    const char *summary, *startups, *transmission; /* of all members except the base */

    /* The highest degree on this torus, which the base accepts: at least 1. */
    uint32_t (*most)(const struct family *f, const struct torus *t);

    /* As route() of algorithm.h, for the member of a degree. */
    uint32_t (*route)(const struct family *f, const struct torus *t, uint32_t degree,
                      uint32_t source, uint32_t destination, struct leg *legs);

    /* The costs of the member of a degree: steps, blocks and hops as schedule_verify() counts them,
     * and the messages that a node sends or passes on. Computed in microseconds to milliseconds. */
    struct cost_counts (*counts)(const struct family *f, const struct torus *t, uint32_t degree);
    uint64_t (*messages)(const struct family *f, const struct torus *t, uint32_t degree);
};

/* The methods of all members, and of a base that has no route() itself. */
extern const struct algorithm_methods family_methods;

/* Returns 0 if the member of a degree is possible on the torus, otherwise -1 with *e
 * (ERROR_REFUSED). */
int family_accepts(const struct family *f, uint32_t degree, const struct torus *t, struct error *e);

/* Returns the member of a degree, at least 1. The first call makes it; it is never freed. NULL if
 * there is no memory: the first FAMILY_NEED_NO_MEMORY members, such as those of the registry, need
 * none. Thread-safe. */
#define FAMILY_NEED_NO_MEMORY 16u
const struct algorithm *family_of_degree(const struct family *f, uint32_t degree);

/* How many members this process has made. */
size_t family_made_count(void);

/* Returns the degree with the lowest price; among equal prices, the lowest degree. `price` is asked for every degree up
 * to 128, and then for powers of two. */
typedef double family_price_fn(const struct family *f, const struct torus *t, uint32_t degree,
                               void *context);
uint32_t family_best(const struct family *f, const struct torus *t, family_price_fn *price,
                     void *context);

/* The families of algorithms (family.h), by name. */

/* Checks a name from a peer or client before it is looked up, because members are kept for ever
 * (family_of_degree()). Returns -1 with *e if it names a member that is not possible on the torus;
 * 0 for all other names. */
int family_check(const char *name, const struct torus *t, struct error *e);

/* Returns the member with this name, never freed, or NULL: no such name, or no memory.
 * Thread-safe. */
const struct algorithm *family_member(const char *name);

/* The family whose best member this name stands for ("cccube-best"), or NULL. */
const struct family *family_of_best(const char *name);

/* --- the CC-cube algorithms (cccube.c), one for each number of packets, Q, which is the degree --- */

extern const struct family family_cccube;

/* The families in which a node sends, and receives, at most k messages at a time, for k from 1 to
 * CCCUBE_PORTS_MOST: cccube-k1, cccube-k2 ... */
#define CCCUBE_PORTS_MOST 8u
extern const struct family family_cccube_ports[CCCUBE_PORTS_MOST];

/* The functions of all these families (family.h) and of their bases (algorithm.h). */
struct cost_counts cccube_counts(const struct family *f, const struct torus *t, uint32_t degree);
uint32_t cccube_most(const struct family *f, const struct torus *t);
