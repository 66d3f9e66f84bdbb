/* Simulates a complete exchange on a banyan, omega or baseline network (multistage.h) tick by tick.
 * The rows of a square enter one after the other; every message finds its way by the bits of its
 * destination. Two messages that need the same line at the same time are a conflict. */
#pragma once

#include <stdbool.h>

#include "client/theory/multistage.h"
#include "proto/error.h"

#define BANYAN_RUN_MOST_STAGES 10u

/* Which output the message of an input is for, by row: row i of the square enters in tick i. */
enum banyan_square {
    BANYAN_ITERATED, /* second construction of banyan.h: the order of ATAPE */
    BANYAN_PRODUCTS, /* first construction of banyan.h: the same rows in another order */
    BANYAN_SHIFT,    /* row + input modulo n: a Latin square with rows that only the omega network
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
