/* The counts of algorithms on a torus, and the times that follow from them, as JSON. */
#ifndef TORUSD_CLI_PREDICTION_H
#define TORUSD_CLI_PREDICTION_H

#include <jansson.h>

#include "daemon/schedule/formula.h"

#define MOST_SIZES 32

struct prediction {
    struct torus torus;
    const char *algorithm;            /* NULL = all that perform the operation */
    const struct algorithm *schedule; /* beside these: from a file; NULL = none */
    enum operation operation;
    struct cost_parameters parameters;
    uint64_t size[MOST_SIZES]; /* of a block, in bytes */
    size_t sizes;
};

/* Returns 0 with *operation set to what the algorithm performs, or -1 with *e listing the known
 * names if it is not one of them. */
int prediction_check_name(const char *name, enum operation *operation, struct error *e);

/* {dims, nodes, operation, parameters, algorithms, refused, times}: `algorithms` has an object for
 * each with its counts and where they come from, or `refused` one with the reason why there are
 * none; `times` one for each of them and each block size, by block size, then the fastest first.
 * NULL with *e set if a single algorithm is requested and has no counts here, or if out of
 * memory. */
json_t *prediction_value(const struct prediction *p, struct error *e);

#endif
