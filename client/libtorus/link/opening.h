/* A program opens the link of a group, and closes it. */
#ifndef TORUSD_CLIENT_LINK_OPENING_H
#define TORUSD_CLIENT_LINK_OPENING_H

#include "client/libtorus/link/link.h"

struct link_options {
    const char *socket, *name;
    uint32_t timeout_ms;
    bool unchecked, leaves_out, waits; /* what of nodes that are down */
    /* The path of the link of a group of this name: opens it without the nodes that are down, and `socket`
     * is not used. NULL: opens one of all nodes. */
    const char *shrinks;
};

/* What a group is that has been opened. */
struct link_opened {
    uint32_t rank; /* of this node */
    char dims[PROGRAM_TEXT_SIZE];
    uint32_t *missing; /* nodes, rising, freed by the caller, also after an error */
    size_t missing_count;
};

/* Opens a group, and waits until all have. Returns 0 with *opened, or -1 with *e; the link is to be
 * closed in either case. */
int link_open(struct program_link *link, const struct link_options *options,
              struct link_opened *opened, struct torus_error *e);

/* Leaves the group, without waiting for anything, and closes. */
void link_close(struct program_link *link);

/* Leaves it because of calls that nobody waits for any more: the group has failed. */
void link_abandon(struct program_link *link, const char *why);

#endif
