/* Memory that a program shares with its daemon. */
#pragma once

#include "client/libtorus/link/link.h"

/* Memory that both the program and the daemon have mapped. */
struct shared_memory {
    uint32_t number; /* 0: none */
    uint8_t *data;
    size_t size;
};

/* Allocates zeroed memory of `bytes`, rounded up to whole pages. Returns 0 with *memory, which the caller frees with
 * link_memory_free(), or -1 with *e and *memory zeroed. */
int link_memory_new(struct program_link *link, size_t bytes, struct shared_memory *memory,
                    struct torus_error *e);
void link_memory_free(struct program_link *link, struct shared_memory *memory);
