/* Text for people that is put together piece by piece, and cut where it does not fit. */
#ifndef TORUSD_EXCHANGE_RECORD_SENTENCE_H
#define TORUSD_EXCHANGE_RECORD_SENTENCE_H

#include "daemon/schedule/torus.h"
#include "proto/error.h"

#define SENTENCE_NODES_MOST 4u /* that are named; of more, how many there are */

struct sentence {
    char text[sizeof((struct error *)0)->text];
    size_t used; /* all 0: empty */
};

void __attribute__((format(printf, 2, 3)))
sentence_add(struct sentence *s, const char *format, ...);

/* "node 5 (1,1)", "nodes 5 (1,1), 6 (1,2) and 3 more": those of which is_one(context, rank) is true. Returns how
 * many these are; 0: nothing is added. */
uint32_t sentence_add_nodes(struct sentence *s, const struct torus *t,
                            bool (*is_one)(const void *context, uint32_t rank),
                            const void *context);

#endif
