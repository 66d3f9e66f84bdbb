/* Latin squares made of basic permutations. Yang and Wang, All-to-All Communication, "Two Methods
 * for Constructing a Latin Square".
 *
 * In a Latin square of order n, every row and every column has each number below n once. Let n =
 * 2^m. The basic permutation phi_k (k = 1 to m) flips bit k-1 of a number. Applying products of
 * basic permutations to a first row, which the caller gives, makes the other rows. square[i * n +
 * j] is the entry in row i and column j. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* First construction: row i is the product of those phi_k for which bit k-1 of i is set, applied to
 * the first row. */
void latin_square_products(unsigned m, uint32_t *square);

/* Second construction: each row is one basic permutation applied to the row before, in the order of
 * a Gray code. */
void latin_square_iterated(unsigned m, uint32_t *square);

/* In the second construction, in the column that has `first` in the first row: the entry in row i,
 * and the row that has `entry`. */
uint32_t latin_entry(uint32_t i, uint32_t first);
uint32_t latin_row(uint32_t first, uint32_t entry);
