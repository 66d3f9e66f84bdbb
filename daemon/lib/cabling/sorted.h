/* A copy of the input in the order of names, so that the answer depends neither on the host that asks nor on the order
 * in which hosts and interfaces were found. In the copy, a smaller place means a smaller name. */
#pragma once

#include "daemon/lib/cabling/cabling.h"

struct sorted {
    struct cabling_input input; /* the copy; names belong to the original */
    uint32_t *host;             /* by host of the copy: its place in the original */
    uint32_t *first; /* by host of the copy, and one more: the number of its first interface */
    uint32_t
        *interface; /* by that number: the place of the interface at its host in the original */
};

/* Checks the input, and copies it. Returns 0, or -1 with *e and nothing to free. */
int sorted_make(struct sorted *s, const struct cabling_input *input, struct error *e);
void sorted_free(struct sorted *s);

/* Changes places of the copy to places of the original. CABLING_NONE stays. */
uint32_t sorted_original_host(const struct sorted *s, uint32_t host);
struct cabling_end sorted_original(const struct sorted *s, struct cabling_end end);
