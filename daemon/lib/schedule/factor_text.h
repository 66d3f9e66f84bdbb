/* The text of a network: factors joined by `x`. torus_parse() and product_parse() read it with these functions, and
 * differ only in what they make of the factors. */
#pragma once

#include "daemon/lib/schedule/factor.h"
#include "proto/error.h"

#define FACTOR_NODES_MOST (1u << 20) /* a larger number is read as this and 1 */

struct factor_text {
    const char *what; /* for errors: "torus" */
    const char *text; /* the whole text */
    const char *at;   /* what is left of it */
    bool links;       /* a complete graph needs a `graph`, too, so that it has ports */
    bool files;       /* may open the file of `graph:FILE` */
    bool known;       /* makes no graphs; a graph must have been made before */
};

/* Reads a factor, and how many times it is repeated: `4`, `ring:4`, `4m`, `line:4`, `array:4`, `complete:4`, `star:5`,
 * `tree:2^3`, `graph:FILE`, `2m^5`. Checks only that there is a number, and what graphs need. Returns 0, or -1 with *e
 * (ERROR_USAGE, or ERROR_MEMORY). */
int factor_text_read(struct factor_text *r, struct factor *f, uint32_t *times, struct error *e);

/* Whether an `x` follows, with or without blanks; if so, moves behind it. */
bool factor_text_goes_on(struct factor_text *r);

/* Returns 0 if the text ends here, or -1 with *e. */
int factor_text_end(const struct factor_text *r, struct error *e);
