/* The costs of algorithms according to the papers. There are formulas for the algorithms of this
 * project, to be compared with what is counted, and for algorithms that are not implemented
 * here, with which the papers compare theirs. Each formula is one row in the file named after
 * its paper. */
#pragma once

#include "client/theory/cost.h"

struct formula {
    const char *algorithm; /* name; in the registry, too, if it is implemented here */
    enum operation operation;
    enum port_model port_model;
    const char *covers_text;  /* the tori that it covers, for people */
    const char *startups;     /* the formulas, for people */
    const char *transmission; /* in blocks */
    const char *rearranged;   /* in blocks; "" if the paper counts none */
    const char *source;       /* paper and place in it */

    bool (*covers)(const struct torus *t);

    /* Startups, transmission and hops on a torus that the formula covers. */
    struct cost_counts (*counts)(const struct torus *t);

    /* Rearranged blocks, on every torus that the algorithm takes; NULL: none. */
    double (*rearrange)(const struct torus *t);
};

/* All formulas, in a fixed order; NULL for any other index. They are never freed. */
size_t formula_count(void);
const struct formula *formula_at(size_t index);
const struct formula *formula_find(const char *algorithm); /* the one with this name, or NULL */

/* Sets *c to the counts of the formula for this torus. Returns 0, or -1 with *e (ERROR_REFUSED),
 * which names the tori that it covers. */
int formula_counts(const struct formula *f, const struct torus *t, struct cost_counts *c,
                   struct error *e);
