/* Memory that a program shares with its daemon. */
#ifndef TORUSD_CLIENT_LINK_MEMORY_H
#define TORUSD_CLIENT_LINK_MEMORY_H

#include "client/libtorus/link/link.h"

/* Memory that the program and the daemon have mapped. */
struct shared_memory {
    uint32_t number; /* 0: none */
    uint8_t *data;
    size_t size;
};

/* Allocates zeroed memory of that size, in whole pages. Returns 0, or -1 with *e and nothing to
 * free. */
int link_memory_new(struct program_link *link, size_t bytes, struct shared_memory *memory,
                    struct torus_error *e);
void link_memory_free(struct program_link *link, struct shared_memory *memory);

#endif
