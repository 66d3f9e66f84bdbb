/* Opening and closing a program's link for a group. */
#pragma once

#include "client/libtorus/link/link.h"

struct link_options {
    const char *socket, *name;
    uint32_t timeout_ms;
    bool unchecked;
    bool leaves_out, waits; /* leave out nodes that are down, or wait for them */
    /* NULL, or the path of the link of an open group `name` that is to be shrunk: then the new group leaves out nodes
     * that are down, and `socket` is not used. */
    const char *shrinks;
};

/* The properties of an opened group. */
struct link_opened {
    uint32_t rank; /* rank of this node */
    char dims[PROGRAM_TEXT_SIZE];
    uint32_t *missing; /* nodes that are left out, ascending; freed by the caller, also after -1 */
    size_t missing_count;
};

/* Opens a group, and waits until all nodes have opened it. Returns 0 with *opened, or -1 with *e. In either case the
 * caller frees opened->missing and closes the link. */
int link_open(struct program_link *link, const struct link_options *options,
              struct link_opened *opened, struct torus_error *e);

/* Leaves the group without waiting for anything, and closes the link. */
void link_close(struct program_link *link);

/* Leaves the group while calls may be under way, which makes it fail. Every later use of the link fails with
 * TORUS_ERROR_CANCELLED and the text `why`. */
void link_abandon(struct program_link *link, const char *why);
