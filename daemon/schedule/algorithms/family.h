/* Algorithms of which there is one for every number: cccube-q5 is the CC-cube in 5 packets. A member
 * has a name like any other algorithm, "<base>-q<degree>", which algorithm_find() knows too; degree
 * 1 is the base itself. "<base>-best" stands for the member that is the fastest for blocks of a
 * size, where there is a size. */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_FAMILY_H
#define TORUSD_SCHEDULE_ALGORITHMS_FAMILY_H

#include "daemon/schedule/algorithm.h"
#include "daemon/schedule/counts.h"

struct family {
    const struct algorithm *base; /* degree 1; what a member does not say of itself is as here */
    const char *best;             /* "cccube-best" */
    const char *summary, *startups, *transmission; /* of all members but the base */

    /* The highest degree on this torus, which the base accepts: at least 1. */
    uint32_t (*most)(const struct torus *t);

    /* algorithm.h, of the member of a degree. */
    uint32_t (*route)(const struct torus *t, uint32_t degree, uint32_t source, uint32_t destination,
                      struct leg *legs);

    /* What it takes: steps, blocks and hops as schedule_verify() counts them, and the messages that
     * a node sends or passes on. Microseconds to milliseconds. */
    struct cost_counts (*counts)(const struct torus *t, uint32_t degree);
    uint64_t (*messages)(const struct torus *t, uint32_t degree);
};

/* Returns -1 with *e if the name is that of a member that is not possible on the torus; 0 for all
 * other names. What a peer or client names is to be checked before it is looked up: members are made
 * when they are first asked for, and kept for ever. */
int family_check(const char *name, const struct torus *t, struct error *e);

/* The member with this name that is not in the registry, made if it is asked for the first time;
 * NULL: no such name, or no memory. May be called from several threads. */
const struct algorithm *family_member(const char *name);

/* Whether it was made so. */
static inline bool family_made(const struct algorithm *a)
{
    return a->family != NULL && a->route == NULL;
}

/* How many have been made so in this program. */
size_t family_made_count(void);

/* The family whose best member the name stands for, or NULL. */
const struct family *family_of_best(const char *name);

/* The member of a degree; NULL: no memory. */
const struct algorithm *family_of_degree(const struct family *f, uint32_t degree);

/* The degree with the lowest price, and of equals the lowest. `price` is asked for every degree on
 * tori of up to 256 nodes; on larger ones up to degree 128, and then for powers of two. */
typedef double family_price_fn(const struct family *f, const struct torus *t, uint32_t degree,
                               void *context);
uint32_t family_best(const struct family *f, const struct torus *t, family_price_fn *price,
                     void *context);

#endif
