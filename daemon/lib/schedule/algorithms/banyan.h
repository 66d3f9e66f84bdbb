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
 * basic permutations to a first row makes the other rows. In the first construction, row i is the
 * product of those phi_k for which bit k-1 of i is set, applied to the first row. In the second, each
 * row is one basic permutation applied to the row before, in the order of a Gray code. */

/* In the second construction, in the column that has `first` in the first row: the entry in row i,
 * and the row that has `entry`. */
uint32_t latin_entry(uint32_t i, uint32_t first);
uint32_t latin_row(uint32_t first, uint32_t entry);

/* The line on which stage `stage` + 1 receives what leaves stage `stage` on `line`. */
uint32_t banyan_link(unsigned stage, uint32_t line);

/* The output that `input` reaches if all switches pass straight on: the first row of the square. */
uint32_t banyan_straight(unsigned m, uint32_t input);
