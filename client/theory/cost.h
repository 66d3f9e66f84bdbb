/* The cost model: turns a schedule's counts into time on a machine with given parameters. The
 * counts come from the verifier's walk over all routes if the torus is small enough, otherwise
 * from the formula in the algorithm's paper. */
#ifndef TORUSD_THEORY_COST_H
#define TORUSD_THEORY_COST_H

#include "daemon/schedule/algorithm.h"
#include "daemon/schedule/counts.h"

/* All in microseconds. */
struct cost_parameters {
    double ts;  /* to start a message */
    double tw;  /* to transmit a byte */
    double rho; /* to rearrange a byte in memory between phases */
    double tp;  /* to switch a message through a node */
};

/* The Intel Paragon, as measured for the comparisons of Liu et al., Optimal All-to-All
 * Personalized Communication in All-Port Tori, section 5; hops take no time. */
extern const struct cost_parameters cost_paragon;

/* Microseconds, by their cause. */
struct cost_time {
    double startups, transmission, rearrangement, hops;
    double total;
};

struct cost_time cost_price(const struct cost_counts *counts, const struct cost_parameters *p,
                            double block_bytes);

enum cost_origin { COST_ENUMERATED, COST_BY_FORMULA };

struct cost {
    enum cost_origin from;
    struct cost_counts counts;  /* rearranged blocks are always the paper's: routes do not show
                                 * them */
    double critical_path;       /* blocks, as in verify.h; 0 where not enumerated */
    bool has_formula;           /* the paper's formula covers this torus: */
    struct cost_counts formula; /* the counts of that formula */
};

const char *cost_origin_name(enum cost_origin from); /* "enumeration", "formula" */

/* Whether all different routes of the algorithm can be walked within a few seconds. */
bool cost_can_enumerate(const struct torus *t, const struct algorithm *a);

/* Counts what any algorithm costs by walking all its routes; also one from a file. Returns 0, or
 * -1 with *e set. */
int cost_enumerate(const struct torus *t, const struct algorithm *a, struct cost *c,
                   struct error *e);

/* Finds the costs of the algorithm of this name on the torus; the name is in the registry, or
 * that of an algorithm of which only the formula is known (formula.h). Returns 0, or -1 with *e
 * set: unknown name, torus refused, neither small enough nor covered by the formula. */
int cost_find(const struct torus *t, const char *name, struct cost *c, struct error *e);

#endif
