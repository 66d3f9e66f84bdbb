/* Shared memory for the bytes of ordinary pointers. It is kept, and used again. */
#ifndef TORUSD_CLIENT_STAGING_H
#define TORUSD_CLIENT_STAGING_H

#include "client/libtorus/link/memory.h"

struct staging_chunk;

struct staging {
    struct staging_chunk *first;
};

/* A part of the staging memory, for one call. */
struct lease {
    struct staging_chunk *chunk; /* NULL: none */
    struct lease *next;          /* in it, by offset */
    size_t offset, size;
    uint32_t number; /* number of the shared memory */
    uint8_t *data;
};

/* Leases `bytes` (not 0), aligned to STAGING_ALIGN, with any contents; the caller gives *lease
 * to staging_return(). Returns 0, or -1 with *e. */
#define STAGING_ALIGN 64u
int staging_lease(struct staging *s, struct program_link *link, size_t bytes, struct lease *lease,
                  struct torus_error *e);

/* Gives a lease back; does nothing if there is none. */
void staging_return(struct staging *s, struct program_link *link, struct lease *lease);

void staging_free(struct staging *s, struct program_link *link);

#endif
