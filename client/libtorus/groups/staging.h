/* Staging memory: memory shared with the daemon, for data that the program has elsewhere. It is reused by later
 * calls. */
#pragma once

#include "client/libtorus/link/memory.h"

struct staging_chunk;

struct staging {
    struct staging_chunk *first;
};

/* A part of the staging memory, for one call. */
struct lease {
    struct staging_chunk *chunk; /* NULL: no lease */
    struct lease *next;          /* the next lease in the chunk, by offset */
    size_t offset, size;
    uint32_t number; /* number of the shared memory */
    uint8_t *data;
};

/* Leases `bytes` (not 0), aligned to STAGING_ALIGN, with undefined contents. Returns 0 with *lease, which the caller
 * passes to staging_return(), or -1 with *e. */
#define STAGING_ALIGN 64u
int staging_lease(struct staging *s, struct program_link *link, size_t bytes, struct lease *lease,
                  struct torus_error *e);

/* Returns a lease. Does nothing if lease->chunk is NULL. */
void staging_return(struct staging *s, struct program_link *link, struct lease *lease);

/* Frees all staging memory. */
void staging_free(struct staging *s, struct program_link *link);
