/* Three unique-path multistage networks: m stages of n/r switches of r inputs and outputs each, n = r^m inputs and
 * outputs, and one path from any input to any output. Yang and Wang run the exchange of ATAPE on a banyan network of
 * 2 x 2 switches, and remark that other such networks can do the same.
 *
 * In all three, a switch has the lines ri to ri + r-1 of its stage, and turns them by some number: line ri + j
 * leaves on ri + (j + turn) modulo r. With r = 2 it passes them straight on or crosses them. Only the links differ, here in
 * digits of a line's number in base r:
 * - banyan: the links from stage i to stage i+1 swap digits 0 and i+1 (daemon/lib/schedule/algorithms/banyan.h).
 * - omega: a perfect shuffle before each stage. It moves the highest digit to the lowest place. Lawrie: Access and
 *   Alignment of Data in an Array Processor (1975).
 * - baseline: between stages i and i+1 an inverse shuffle in each block of r^(m-i) lines. It moves digit 0 to digit
 *   m-i-1. Wu, Feng: On a Class of Multistage Interconnection Networks (1980).
 *
 * Why the exchange of ATAPE works on each: a stage decides one digit of the output's number, a different one in each
 * stage, since the links after it move that digit to its place and no later stage touches it. So if all switches of a
 * stage turn by the same number, that is added to the digit of all outputs, modulo r. Setting whole stages passes n
 * permutations without conflict: the one without turns, with each number below n added to it digit by digit. These
 * are the rows of a Latin square. client/doc/open-questions.md has the theorem for any r. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/error.h"

enum multistage_kind { MULTISTAGE_BANYAN, MULTISTAGE_OMEGA, MULTISTAGE_BASELINE };
#define MULTISTAGE_KINDS 3u

struct multistage {
    enum multistage_kind kind;
    uint32_t radix;  /* r, at least 2 */
    unsigned stages; /* m */
};

const char *multistage_name(enum multistage_kind kind); /* "banyan", "omega", "baseline" */

uint32_t multistage_inputs(const struct multistage *net); /* n */

/* The line on which stage 0 receives an input's message. */
uint32_t multistage_enter(const struct multistage *net, uint32_t input);

/* The line on which stage `stage` + 1 receives what leaves stage `stage` on `line`; after the last
 * stage, the output. */
uint32_t multistage_link(const struct multistage *net, unsigned stage, uint32_t line);

/* Self-routing: the line on which stage `stage` puts out a message that came in on `line`. The
 * switch looks at one digit of the number of the message's output. */
uint32_t multistage_switch(const struct multistage *net, unsigned stage, uint32_t line,
                           uint32_t output);

/* The output that an input reaches if no switch turns: the first row of the Latin square. */
uint32_t multistage_straight(const struct multistage *net, uint32_t input);

/* ---- A complete exchange, tick by tick --------------------------------------------------------
 *
 * The rows of a square enter one after another; every message finds its way by the digits of its
 * destination. Two messages that need the same line at the same time are a conflict. */

#define BANYAN_RUN_MOST_STAGES 10u
#define BANYAN_RUN_MOST_INPUTS 1024u

/* Which output the message of an input is for, by row: row i of the square enters in tick i. */
enum banyan_square {
    BANYAN_ITERATED, /* second construction of schedule/algorithms/banyan.h: the order of ATAPE; from
                      * row to row, one stage turns by one more */
    BANYAN_PRODUCTS, /* first construction of schedule/algorithms/banyan.h: the same rows in another
                      * order, the first row with the number of the row added to it digit by digit */
    BANYAN_SHIFT,    /* row + input modulo n: a Latin square with rows that only the omega network
                      * passes, with switches of a stage set differently */
};
#define BANYAN_SQUARES 3u

const char *banyan_square_name(enum banyan_square s); /* "iterated", "products", "shift" */

/* The output for which this input has its message in this row of the square. */
uint32_t banyan_entry(const struct multistage *net, enum banyan_square s, uint32_t row,
                      uint32_t input);

/* Writes how the switches of each stage are set for a row: '=' all straight, 'x' all crossed, '*'
 * set differently. With a radix above 2, '1' to '9' and '+' (10 or more) are the turns. `text` has room for a
 * character for each stage, and one more. Returns `text`. */
char *banyan_row_settings(const struct multistage *net, enum banyan_square s, uint32_t row,
                          char *text);

struct banyan_report {
    uint32_t ticks;     /* until all outputs have all their messages */
    uint64_t delivered; /* messages, including those of a node to itself */
    bool whole_stages;  /* in every row, all switches of a stage are set alike */
};

/* Simulates a network of up to BANYAN_RUN_MOST_INPUTS inputs. Returns 0 with *r; or -1 with *e: a
 * conflict (ERROR_DAMAGED, names row, stage, line and inputs), no memory. */
int banyan_run(const struct multistage *net, enum banyan_square s, struct banyan_report *r,
               struct error *e);
