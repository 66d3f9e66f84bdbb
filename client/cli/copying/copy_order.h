/* The request of a copy, made from options. */
#pragma once

#include <torus/torus.h>

#include "client/cli/copying/copy_arguments.h"
#include "client/cli/copying/copy_patterns.h"

struct copy_order {
    struct torus_copy copy; /* the request; its lists are those below */
    char *source[TORUS_COPY_LIST_MAX];
    char *target;
    uint32_t *nodes;
    struct copy_patterns patterns;
};

/* Makes a request, and checks everything that does not depend on the torus. `arguments` must stay. Returns 0, or -1
 * with *e. In either case the caller gives *o to copy_order_free(). */
int copy_order_make(struct copy_order *o, enum torus_copy_kind kind, const struct copy_arguments *a,
                    struct error *e);

/* Completes the request for the node that is asked: its rank, and the ranks of --nodes. Returns 0, or -1 with *e. */
int copy_order_place(struct copy_order *o, const char *list, uint32_t rank, uint32_t nodes,
                     struct error *e);
void copy_order_free(struct copy_order *o);
