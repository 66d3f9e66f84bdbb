/* Three unique-path multistage networks: m stages of n/2 switches, n = 2^m inputs and outputs, and
 * one path from any input to any output. Yang and Wang run the exchange of ATAPE on a banyan network,
 * and remark that other such networks can do the same.
 *
 * In all three, a switch has the lines 2i and 2i+1 of its stage, and passes them straight on or
 * crosses them. Only the links differ:
 * - banyan: daemon/lib/schedule/algorithms/banyan.h.
 * - omega: a perfect shuffle before each stage. It moves the highest bit of a line's number to the
 *   lowest place. Lawrie: Access and Alignment of Data in an Array Processor (1975).
 * - baseline: between stages i and i+1 an inverse shuffle in each block of 2^(m-i) lines. It moves
 *   bit 0 to bit m-i-1. Wu, Feng: On a Class of Multistage Interconnection Networks (1980).
 *
 * Why the exchange of ATAPE works on each: a stage decides one bit of the output's number, a different
 * one in each stage, since the links after it move that bit to its place and no later stage touches
 * it. So if all switches of a stage cross, that bit of all outputs is flipped. Setting whole stages
 * passes n permutations without conflict: the one with nothing crossed, and that one XORed with each
 * number below n. These are the rows of a Latin square by either construction of banyan.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/error.h"

enum multistage { MULTISTAGE_BANYAN, MULTISTAGE_OMEGA, MULTISTAGE_BASELINE };
#define MULTISTAGE_KINDS 3u

const char *multistage_name(enum multistage kind); /* "banyan", "omega", "baseline" */

/* The line on which stage 0 receives an input's message. */
uint32_t multistage_enter(enum multistage kind, unsigned m, uint32_t input);

/* The line on which stage `stage` + 1 receives what leaves stage `stage` on `line`; after the last
 * stage, the output. */
uint32_t multistage_link(enum multistage kind, unsigned m, unsigned stage, uint32_t line);

/* Self-routing: the line on which stage `stage` puts out a message that came in on `line`. The
 * switch looks at one bit of the number of the message's output. */
uint32_t multistage_switch(enum multistage kind, unsigned m, unsigned stage, uint32_t line,
                           uint32_t output);

/* The output that an input reaches if no switch crosses: the first row of the Latin square. */
uint32_t multistage_straight(enum multistage kind, unsigned m, uint32_t input);

/* ---- A complete exchange, tick by tick --------------------------------------------------------
 *
 * The rows of a square enter one after another; every message finds its way by the bits of its
 * destination. Two messages that need the same line at the same time are a conflict. */

#define BANYAN_RUN_MOST_STAGES 10u

/* Which output the message of an input is for, by row: row i of the square enters in tick i. */
enum banyan_square {
    BANYAN_ITERATED, /* second construction of schedule/algorithms/banyan.h: the order of ATAPE */
    BANYAN_PRODUCTS, /* first construction of schedule/algorithms/banyan.h: the same rows in another order */
    BANYAN_SHIFT, /* row + input modulo n: a Latin square with rows that only the omega network
                      * passes, with switches of a stage set differently */
};
#define BANYAN_SQUARES 3u

const char *banyan_square_name(enum banyan_square s); /* "iterated", "products", "shift" */

/* The output for which this input has its message in this row of the square, on a network of m
 * stages. */
uint32_t banyan_entry(enum multistage network, unsigned m, enum banyan_square s, uint32_t row,
                      uint32_t input);

/* Writes how the switches of each stage are set for a row: '=' all straight, 'x' all crossed, '*'
 * some crossed. `text` has room for m + 1 characters. Returns `text`. */
char *banyan_row_settings(enum multistage network, unsigned m, enum banyan_square s, uint32_t row,
                          char *text);

struct banyan_report {
    uint32_t ticks;     /* until all outputs have all their messages */
    uint64_t delivered; /* messages, including those of a node to itself */
    bool whole_stages;  /* in every row, all switches of a stage are set alike */
};

/* Simulates a network of m stages, 0 to BANYAN_RUN_MOST_STAGES. Returns 0 with *r; or -1 with *e: a
 * conflict (ERROR_DAMAGED, names row, stage, line and inputs), no memory. */
int banyan_run(enum multistage network, unsigned m, enum banyan_square s, struct banyan_report *r,
               struct error *e);
