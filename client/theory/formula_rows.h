/* The list of all formulas, for formula.c and the files that define them, and conditions on tori
 * that several formulas use. To add a formula, define `formula_<name>` in the file of its paper,
 * and add an entry here. */
#pragma once

#include "client/theory/formula.h"

/* clang-format off */
#define FORMULAS(ROW) \
    ROW(ar) ROW(at2) ROW(at2_printed) ROW(tseng) ROW(suh_yalamanchili) ROW(suh_shin) \
    ROW(tseng_gupta) ROW(squares) ROW(yangwang) ROW(saadschultz) ROW(calvin) \
    ROW(ar1) ROW(at2_1port) ROW(pt) ROW(pt_recurrence) ROW(mt) \
    ROW(a1) ROW(a2) ROW(a3) ROW(cccube)
/* clang-format on */

#define FORMULA_DECLARE(name) extern const struct formula formula_##name;
FORMULAS(FORMULA_DECLARE)
#undef FORMULA_DECLARE

/* Whether every dimension wraps, and its size is a multiple of `multiple`. */
static inline bool torus_multiples(const struct torus *t, uint32_t multiple)
{
    bool all = true;
    for (unsigned i = 0; i < t->dims; i++)
        all = all && t->wrap[i] && t->size[i] % multiple == 0;
    return all;
}

/* Nodes along the longest dimension. */
static inline uint32_t torus_longest(const struct torus *t)
{
    uint32_t longest = 1;
    for (unsigned i = 0; i < t->dims; i++)
        longest = t->size[i] > longest ? t->size[i] : longest;
    return longest;
}

/* Whether the torus is a ring of an even number of nodes, at least 4. */
static inline bool torus_even_ring(const struct torus *t)
{
    uint32_t p = torus_longest(t);
    bool ring = p == t->nodes && p >= 4 && p % 2 == 0;
    for (unsigned i = 0; i < t->dims; i++)
        ring = ring && (t->wrap[i] || t->size[i] == 1);
    return ring;
}
