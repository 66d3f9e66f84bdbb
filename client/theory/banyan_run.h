/* Carries out a complete exchange on a banyan network (banyan.h) tick by tick: the rows of a
 * square enter one after the other, every message finds its way by the bits of its destination,
 * and two messages that need the same line at the same time are a conflict. */
#ifndef TORUSD_THEORY_BANYAN_RUN_H
#define TORUSD_THEORY_BANYAN_RUN_H

#include <stdbool.h>

#include "daemon/schedule/algorithms/banyan.h"
#include "proto/error.h"

#define BANYAN_RUN_MOST_STAGES 10u

/* Which output the message of an input is for, by row. */
enum banyan_square {
    BANYAN_ITERATED, /* latin.h, second construction: the order of ATAPE */
    BANYAN_PRODUCTS, /* latin.h, first construction: the same rows in another order */
    BANYAN_SHIFT,    /* row + input modulo n: a Latin square like any other */
};
#define BANYAN_SQUARES 3u

const char *banyan_square_name(enum banyan_square s); /* "iterated", "products", "shift" */

uint32_t banyan_entry(unsigned m, enum banyan_square s, uint32_t row, uint32_t input);

/* Writes how the switches of each stage are set for a row: '=' all straight, 'x' all crossed,
 * '*' some crossed. `text` has room for m + 1 characters. Returns text. */
char *banyan_row_settings(unsigned m, enum banyan_square s, uint32_t row, char *text);

struct banyan_report {
    uint32_t ticks;     /* until all outputs have all messages */
    uint64_t delivered; /* messages, those to the node itself included */
    bool whole_stages;  /* in every row, all switches of a stage are set alike */
};

/* Runs 0 to BANYAN_RUN_MOST_STAGES stages. Returns 0 with *r; or -1 with *e: a conflict, with
 * row, stage, line and inputs (ERROR_DAMAGED), or no memory. */
int banyan_run(unsigned m, enum banyan_square s, struct banyan_report *r, struct error *e);

#endif
