/* The counts of algorithms on a torus and their predicted times, as JSON. */
#pragma once

#include <jansson.h>

#include "client/theory/formula.h"

#define MOST_SIZES 32

struct prediction {
    struct torus torus;
    const char *algorithm;            /* NULL: all algorithms for the operation */
    const struct algorithm *schedule; /* also this schedule from a file; NULL: none */
    enum operation operation;
    struct cost_parameters parameters;
    uint64_t size[MOST_SIZES]; /* block sizes, in bytes */
    size_t sizes;
};

/* Returns 0 with the operation of the algorithm, or -1 with *e, which lists the known names. */
int prediction_check_name(const char *name, enum operation *operation, struct error *e);

/* Returns {dims, nodes, operation, parameters, algorithms, refused, times}. Each algorithm has an object in
 * `algorithms`, with its counts and their origin, or in `refused`, with the reason why it has no counts. `times` has
 * an object for each algorithm and block size, by block size, fastest first. Returns NULL with *e if p->algorithm has
 * no counts on this torus, or if memory is short. */
json_t *prediction_value(const struct prediction *p, struct error *e);
