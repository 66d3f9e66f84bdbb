/* Opening and closing a program's link for a group. */
#ifndef TORUSD_CLIENT_LINK_OPENING_H
#define TORUSD_CLIENT_LINK_OPENING_H

#include "client/libtorus/link/link.h"

struct link_options {
    const char *socket, *name;
    uint32_t timeout_ms;
    bool unchecked, leaves_out, waits; /* the last two: what to do about nodes that are down */
    /* NULL to open a group of all nodes. Otherwise the path of the link of the group `name`:
     * that group is opened without the nodes that are down, and `socket` is not used. */
    const char *shrinks;
};

/* The properties of an opened group. */
struct link_opened {
    uint32_t rank; /* rank of this node */
    char dims[PROGRAM_TEXT_SIZE];
    uint32_t *missing; /* nodes, rising, freed by the caller, also after an error */
    size_t missing_count;
};

/* Opens a group, and waits until all nodes have opened it. Returns 0 with *opened, or -1 with
 * *e; the caller closes the link in either case. */
int link_open(struct program_link *link, const struct link_options *options,
              struct link_opened *opened, struct torus_error *e);

/* Leaves the group without waiting for anything, and closes the link. */
void link_close(struct program_link *link);

/* Leaves the group although calls are under way, for which nobody waits any more: the group has
 * failed. */
void link_abandon(struct program_link *link, const char *why);

#endif
