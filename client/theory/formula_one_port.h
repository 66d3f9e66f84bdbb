/* Formulas of Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for All-to-All Personalized
 * Communication on Multidimensional Tori, for k dimensions, the longest with `longest` nodes, and
 * `nodes` nodes in all. All sizes are multiples of 2k. The functions take numbers rather than a
 * torus, because eight dimensions of 16 are more nodes than a struct torus can have. */
#pragma once

#include "client/theory/cost.h"

/* PTk, for k a power of two: the closed form of section 5.1, which for k = 2 is the formula of AT2
 * in section 4. */
struct cost_counts formula_pt_counts(unsigned k, uint32_t longest, double nodes);

/* PTk by the recurrence of section 5.1. For k up to 4 it gives the transmission of the closed form,
 * from k = 8 on less: beside the rings' main term k/2 * (1 + log2 k) blocks a node, where the
 * closed form has floor(k^2/4) + k/2. */
struct cost_counts formula_pt_recurrence_counts(unsigned k, uint32_t longest, double nodes);

/* MTk: the formula of section 5.3, which for k = 1 is that of AR1 in section 3. */
struct cost_counts formula_mt_counts(unsigned k, uint32_t longest, double nodes);
