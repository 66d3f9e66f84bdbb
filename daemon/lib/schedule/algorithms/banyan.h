/* A banyan network: n = 2^m inputs and outputs, m stages of n/2 switches, one path between any
 * input and output. Yang and Wang, All-to-All Communication, "All-to-All Personalized Exchange".
 *
 * Lines are numbered 0 to n-1 between any two stages. A switch has the lines 2i and 2i+1, and
 * passes them straight on or crosses them (the paper's basic permutation phi_1). The links from
 * stage i to stage i+1 swap bits 0 and i+1 of a line's number. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Latin squares made of basic permutations. Yang and Wang, All-to-All Communication, "Two Methods
 * for Constructing a Latin Square".
 *
 * In a Latin square of order n, every row and every column has each number below n once. Let n =
 * 2^m. The basic permutation phi_k (k = 1 to m) flips bit k-1 of a number. Applying products of
 * basic permutations to a first row, which the caller gives, makes the other rows. square[i * n +
 * j] is the entry in row i and column j. */

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

/* The line on which stage `stage` + 1 receives what leaves stage `stage` on `line`. */
uint32_t banyan_link(unsigned stage, uint32_t line);

/* The output that `input` reaches if the switches of the stages whose bits are set in `crossed`
 * cross, and all others pass straight on. Such a permutation is admissible: no two paths meet. */
uint32_t banyan_permutation(unsigned m, uint32_t crossed, uint32_t input);

/* The stages to cross for row `row` of the Latin square whose first row is the permutation without
 * crossed stages (latin_square_iterated()). One bit for each stage. */
uint32_t banyan_settings(unsigned m, uint32_t row);

/* Self-routing: the line on which stage `stage` puts out a message that came in on `line`. The
 * switch looks at one bit of the number of the message's output. */
uint32_t banyan_switch(unsigned m, unsigned stage, uint32_t line, uint32_t output);

/* Steps of a complete exchange: a row of the Latin square enters in each step, and the last row
 * passes m stages. */
uint32_t banyan_steps(unsigned m);
