/* Simulates an exchange on a product of rings, arrays and other graphs block by block: counts
 * the costs of A1 and A2 instead of computing them, and refuses what the model forbids. For
 * networks that are not tori, such as generalized hypercubes. */
#pragma once

#include "daemon/lib/schedule/product.h"

#define PRODUCT_RUN_MOST_NODES 1024u

struct product_report {
    uint32_t steps;        /* steps in which something is sent */
    uint64_t transmission; /* most blocks in a message, summed over steps */
    uint64_t messages;     /* combined messages */
    uint64_t blocks;       /* blocks delivered */
    uint64_t hops;         /* hops of all blocks together */
};

/* product_route(), or what a test uses instead. */
typedef unsigned product_route_fn(const struct product *p, enum product_algorithm a,
                                  uint32_t source, uint32_t destination,
                                  struct product_walk *walks);

/* Returns 0 with *r; or -1 with *e: more than PRODUCT_RUN_MOST_NODES nodes, or more steps than a
 * schedule can have (ERROR_REFUSED); a block that does not arrive, a hop between nodes that are not
 * adjacent, or a node that sends or receives two messages in a step (ERROR_DAMAGED, names pair,
 * step and nodes); no memory. */
int product_run(const struct product *p, enum product_algorithm a, product_route_fn *route,
                struct product_report *r, struct error *e);
