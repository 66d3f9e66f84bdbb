/* Text for people that is put together piece by piece, and truncated where it does not fit. */
#pragma once

#include "daemon/lib/schedule/torus.h"
#include "proto/error.h"

#define SENTENCE_NODES_MOST 4u /* nodes that are named; beyond that only their number */

struct sentence {
    char text[sizeof((struct error *)0)->text];
    size_t used; /* a zeroed sentence is empty */
};

/* Adds formatted text. */
void __attribute__((format(printf, 2, 3)))
sentence_add(struct sentence *s, const char *format, ...);

/* Adds the nodes for which is_one(context, rank) is true: "node 5 (1,1)", "nodes 5 (1,1), 6 (1,2) and 3 more".
 * Returns the number of these nodes; adds nothing if it is 0. */
uint32_t sentence_add_nodes(struct sentence *s, const struct torus *t,
                            bool (*is_one)(const void *context, uint32_t rank),
                            const void *context);
