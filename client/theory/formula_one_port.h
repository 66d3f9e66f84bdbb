/* Formulas of Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for All-to-All Personalized
 * Communication on Multidimensional Tori, for k dimensions of which the longest has `longest`
 * nodes, `nodes` in all. By numbers, since eight dimensions of 16 are too many nodes for a torus
 * here. All sizes are multiples of 2k. */
#ifndef TORUSD_THEORY_FORMULA_ONE_PORT_H
#define TORUSD_THEORY_FORMULA_ONE_PORT_H

#include "client/theory/cost.h"

/* PTk, k a power of two: section 5.1's closed form, and AT2's of section 4 (k = 2). */
struct cost_counts formula_pt_counts(unsigned k, uint32_t longest, double nodes);

/* PTk by the recurrence that section 5.1 describes. The transmission is the closed form's for k up
 * to 4, and less from k = 8 on: k/2 * (1 + log2 k) blocks a node beside the rings' main term, where
 * the closed form has floor(k^2/4) + k/2. */
struct cost_counts formula_pt_recurrence_counts(unsigned k, uint32_t longest, double nodes);

/* MTk: section 5.3, and AR1's of section 3 (k = 1). */
struct cost_counts formula_mt_counts(unsigned k, uint32_t longest, double nodes);

#endif
