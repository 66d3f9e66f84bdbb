/* A banyan network: n = 2^m inputs and outputs, m stages of n/2 switches, one path between any
 * input and output. Yang and Wang, All-to-All Communication, "All-to-all personalized exchange".
 *
 * A switch of a stage has lines 2i and 2i+1 and passes them straight on, or crosses them (which is
 * the basic permutation phi_1 of its lines). From stage i to stage i+1, line numbers have bits 0
 * and i+1 swapped. */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_BANYAN_H
#define TORUSD_SCHEDULE_ALGORITHMS_BANYAN_H

#include <stdint.h>

/* The line on which stage `stage` + 1 takes what comes out of stage `stage` on `line`. */
uint32_t banyan_link(unsigned stage, uint32_t line);

/* The output that an input is connected with if all switches of the stages whose bits are set in
 * `crossed` are crossed, and no others: an admissible permutation. */
uint32_t banyan_permutation(unsigned m, uint32_t crossed, uint32_t input);

/* The stages that have to be crossed for row `row` of the Latin square: that below the permutation
 * with no stage crossed, by latin_square_iterated(). */
uint32_t banyan_settings(unsigned m, uint32_t row);

/* Self-routing: the line on which stage `stage` puts out a message that it has taken on `line`, by
 * one bit of its output's number. */
uint32_t banyan_switch(unsigned m, unsigned stage, uint32_t line, uint32_t output);

/* Steps of a complete exchange: row after row enters, the last one passes the m stages. */
uint32_t banyan_steps(unsigned m);

#endif
