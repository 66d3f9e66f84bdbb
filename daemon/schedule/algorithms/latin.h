/* Latin squares from basic permutations. Yang and Wang, All-to-All Communication, "Two Methods for
 * Constructing a Latin Square".
 *
 * The basic permutation phi_k (k = 1..m) flips bit k-1 of a number below n = 2^m. A square is made
 * of a first row, some order of the numbers, by applying permutations to it: square[i * n + j] is
 * the entry in row i and column j, square[0..n-1] the first row, given by the caller. */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_LATIN_H
#define TORUSD_SCHEDULE_ALGORITHMS_LATIN_H

#include <stddef.h>
#include <stdint.h>

/* First construction: every product of different basic permutations makes a row of the first one;
 * row i that of those that i has bits for. */
void latin_square_products(unsigned m, uint32_t *square);

/* Second construction: every row by one basic permutation from the row before, in the order of a
 * Gray code. */
void latin_square_iterated(unsigned m, uint32_t *square);

/* The entry of the second construction's row i below `first` in the first row; and the row in which
 * `entry` stands below it. */
uint32_t latin_entry(uint32_t i, uint32_t first);
uint32_t latin_row(uint32_t first, uint32_t entry);

#endif
