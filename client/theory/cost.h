/* The cost model: turns a schedule's counts into time on a machine with given parameters. On small
 * tori the verifier counts all routes; on larger ones the counts come from the formula of the
 * algorithm's paper. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/algorithms/family.h"

/* The parameters of a machine, in microseconds. */
struct cost_parameters {
    double ts;  /* to start a message */
    double tw;  /* to transmit a byte */
    double rho; /* to rearrange a byte in memory between phases */
    double tp;  /* to switch a message through a node */
};

/* The Intel Paragon, as in the comparisons of Liu et al., Optimal All-to-All Personalized
 * Communication in All-Port Tori, section 5. Hops take no time. */
extern const struct cost_parameters cost_paragon;

/* Microseconds, by cause. */
struct cost_time {
    double startups, transmission, rearrangement, hops;
    double total;
};

/* The time of a schedule with these counts, for blocks of block_bytes bytes. */
struct cost_time cost_price(const struct cost_counts *counts, const struct cost_parameters *p,
                            double block_bytes);

enum cost_origin { COST_ENUMERATED, COST_BY_FORMULA };

struct cost {
    enum cost_origin from;
    struct cost_counts counts;  /* rearranged blocks are always those of the paper, because
                                 * routes do not show them */
    double critical_path;       /* blocks, as in verify.h; 0 if not enumerated */
    bool has_formula;           /* a formula covers this torus, and gives: */
    struct cost_counts formula; /* its counts */
};

const char *cost_origin_name(enum cost_origin from); /* "enumeration", "formula" */

/* Whether all different routes of the algorithm can be followed within a few seconds. */
bool cost_can_enumerate(const struct torus *t, const struct algorithm *a);

/* Counts the costs of any algorithm, also of one from a file, by following all its routes, on channels of these rates
 * (schedule_verify_rated(); NULL: all alike). Returns
 * 0 with *c, without formula; or -1 with *e: see schedule_verify(). */
int cost_enumerate(const struct torus *t, const struct algorithm *a, const struct damage *rates,
                   struct cost *c, struct error *e);

/* Finds the costs of an algorithm by its name, which is in the registry, or that of an algorithm of
 * which only a formula exists (formula.h). Formulas are for channels that are all alike, `rates` NULL. Returns 0 with *c; or -1 with *e: unknown name
 * (ERROR_USAGE); the algorithm refuses the torus, or the torus is too large to count and no formula
 * covers it (ERROR_REFUSED); no memory. */
int cost_find(const struct torus *t, const char *name, const struct damage *rates, struct cost *c,
              struct error *e);
