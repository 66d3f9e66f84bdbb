/* The copies in a node's status. */
#ifndef TORUS_REQUESTS_STATUS_COPIES_H
#define TORUS_REQUESTS_STATUS_COPIES_H

#include <torus/status.h>

#include "proto/control.pb-c.h"

struct status_copies {
    struct torus_copy_info *copy;
    const struct torus_copy_info **list;
};

/* Fills *c, which points into *status. Returns 0, or -1 with *e. The caller gives *c to status_copies_free() in any
 * case. */
int status_copies_fill(struct status_copies *c, const Control__Status *status,
                       struct torus_error *e);
void status_copies_free(struct status_copies *c);

#endif
