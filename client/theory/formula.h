/* The costs of algorithms according to the papers: formulas for the algorithms of this library,
 * to be compared with what is counted, and for algorithms with which the papers compare theirs,
 * and which are not implemented here. Each has one row in the file named after its paper. */
#ifndef TORUSD_THEORY_FORMULA_H
#define TORUSD_THEORY_FORMULA_H

#include "client/theory/cost.h"

struct formula {
    const char *algorithm; /* its name; also in the registry if it is implemented here */
    enum operation operation;
    enum port_model port_model;
    const char *covers_text;  /* the tori that it covers, in words */
    const char *startups;     /* the formulas in words */
    const char *transmission; /* in blocks */
    const char *rearranged;   /* in blocks; "" where the paper counts none */
    const char *source;       /* paper and place in it */

    bool (*covers)(const struct torus *t);

    /* Startups, transmission and hops on a torus that it covers. */
    struct cost_counts (*counts)(const struct torus *t);

    /* Rearranged blocks, on every torus that the algorithm takes; NULL = none are rearranged. */
    double (*rearrange)(const struct torus *t);
};

size_t formula_count(void);
const struct formula *formula_at(size_t index);
const struct formula *formula_find(const char *algorithm); /* NULL if there is none */

/* The counts that the formula gives for this torus. Returns 0, or -1 with *e saying which tori
 * it covers. */
int formula_counts(const struct formula *f, const struct torus *t, struct cost_counts *c,
                   struct error *e);

#endif
