/* The cost model: what a schedule's counts mean in time on a machine with given parameters, and
 * where the counts come from: the verifier's walk over all routes where the torus is small enough
 * for that, else the formula that the algorithm's paper gives. */
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

/* The Intel Paragon, as measured for the comparisons of Liu et al., Optimal All-to-All Personalized
 * Communication in All-Port Tori, section 5; no time for hops. */
extern const struct cost_parameters cost_paragon;

/* Microseconds, by what they are spent on. */
struct cost_time {
    double startups, transmission, rearrangement, hops;
    double total;
};

struct cost_time cost_price(const struct cost_counts *counts, const struct cost_parameters *p,
                            double block_bytes);

enum cost_origin { COST_ENUMERATED, COST_BY_FORMULA };

struct cost {
    enum cost_origin from;
    struct cost_counts counts;  /* the rearranged blocks always by the paper: routes do not show
                                 * them */
    double critical_path;       /* blocks, as in verify.h; 0 where not enumerated */
    bool has_formula;           /* the paper's formula covers this torus: */
    struct cost_counts formula; /* what it says */
};

const char *cost_origin_name(enum cost_origin from); /* "enumeration", "formula" */

/* Whether all different routes of the algorithm can be walked within a few seconds. */
bool cost_can_enumerate(const struct torus *t, const struct algorithm *a);

/* What any algorithm costs by walking all its routes: one from a file, too. Returns 0, or -1 with *e
 * set. */
int cost_enumerate(const struct torus *t, const struct algorithm *a, struct cost *c,
                   struct error *e);

/* What the algorithm of this name costs on the torus; the name is one of the registry's, or of an
 * algorithm of which only the formula is known (formula.h). Returns 0, or -1 with *e set: unknown
 * name, torus refused, neither small enough nor covered by the formula. */
int cost_find(const struct torus *t, const char *name, struct cost *c, struct error *e);

#endif
