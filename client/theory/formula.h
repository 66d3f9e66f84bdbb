/* The costs of algorithms according to the papers. There are formulas for the algorithms of this
 * project, to be compared with what is counted, and for algorithms that are not implemented
 * here, with which the papers compare theirs. Each formula is a row of the table in formula.c. */
#pragma once

#include "client/theory/cost.h"

struct formula {
    const char *algorithm; /* name; in the registry, too, if it is implemented here */
    enum schedule_operation operation;
    enum port_model port_model;
    const char *covers_text;  /* the tori that it covers, for people */
    const char *startups;     /* the formulas, for people */
    const char *transmission; /* in blocks */
    const char *rearranged;   /* in blocks; "" if the paper counts none */
    const char *source;       /* paper and place in it */

    /* NULL: the formula covers every torus that the algorithm accepts. */
    bool (*covers)(const struct torus *t);

    /* Startups, transmission and hops on a torus that the formula covers; and rearranged blocks, on
     * every torus that the algorithm accepts. */
    struct cost_counts (*counts)(const struct torus *t);
};

/* All formulas, in a fixed order; NULL for any other index. They are never freed. */
size_t formula_count(void);
const struct formula *formula_at(size_t index);
const struct formula *formula_find(const char *algorithm); /* the one with this name, or NULL */

/* Sets *c to the counts of the formula for this torus. Returns 0, or -1 with *e (ERROR_REFUSED),
 * which names the tori that it covers. */
int formula_counts(const struct formula *f, const struct torus *t, struct cost_counts *c,
                   struct error *e);

/* Formulas of Liu, Gu, Ren, Xiong for k dimensions, the longest with `longest` nodes, and `nodes`
 * nodes in all. All sizes are multiples of 2k. The functions take numbers rather than a torus,
 * because eight dimensions of 16 are more nodes than a struct torus can have.
 *
 * PTk, for k a power of two: the closed form of section 5.1, which for k = 2 is the formula of AT2
 * in section 4. */
struct cost_counts formula_pt_counts(unsigned k, uint32_t longest, double nodes);

/* PTk by the recurrence of section 5.1. For k up to 4 it gives the transmission of the closed form,
 * from k = 8 on less: beside the rings' main term k/2 * (1 + log2 k) blocks a node, where the
 * closed form has floor(k^2/4) + k/2. */
struct cost_counts formula_pt_recurrence_counts(unsigned k, uint32_t longest, double nodes);

/* MTk: the formula of section 5.3, which for k = 1 is that of AR1 in section 3. */
struct cost_counts formula_mt_counts(unsigned k, uint32_t longest, double nodes);
