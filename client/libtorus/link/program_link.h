/* A program's connection to its daemon, for one group: messages, the page of calls, shared memory
 * (proto/program.h). */
#ifndef TORUSD_CLIENT_PROGRAM_LINK_H
#define TORUSD_CLIENT_PROGRAM_LINK_H

#include <torus/group.h>

#include <sys/types.h>

#include "proto/program.h"

struct program_link {
    int fd, doorbell, notices; /* -1: not open */
    pid_t process;             /* that has opened it */
    char *path;
    struct program_page *page;
    uint32_t submitted;       /* calls */
    uint32_t told;            /* calls that the caller knows to have ended */
    bool wants_notices;       /* about the others */
    struct torus_error error; /* why nothing goes any more, unless its code is 0 */
};

/* Memory that both have mapped. */
struct shared_memory {
    uint32_t number; /* 0: none */
    uint8_t *data;
    size_t size;
};

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

/* Zeroed memory of that size, in whole pages. Returns 0, or -1 with *e and nothing left. */
int link_memory_new(struct program_link *link, size_t bytes, struct shared_memory *memory,
                    struct torus_error *e);
void link_memory_free(struct program_link *link, struct shared_memory *memory);

/* The slot of the next call, whose request the caller fills in before link_submit(). It must not be
 * in use any more. */
struct program_slot *link_next_slot(struct program_link *link);
void link_submit(struct program_link *link);

/* Whether call `number` has ended; then *e says why, or has code 0. */
bool link_has_ended(const struct program_link *link, uint32_t number, struct torus_error *e);

/* Whether the daemon has said whom a call that has not ended waits for; then copies that. */
bool link_is_late(const struct program_link *link, uint32_t number, char *whom, size_t size);

/* Whether the connection is still good: 0, or -1 with *e. */
int link_check(struct program_link *link, struct torus_error *e);

/* Whether the group has not failed: 0, or -1 with *e. */
int link_is_whole(struct program_link *link, struct torus_error *e);

/* Waits until call `number` has ended, for that long at most. Returns whether it has. Other threads may use
 * the link meanwhile, as long as they do not close it. */
bool link_pause(const struct program_link *link, uint32_t number, uint64_t nanoseconds);

/* Waits until call `number` has ended, as above, or the connection. */
void link_wait(struct program_link *link, uint32_t number, struct torus_error *e);

/* The caller knows of the end of one more call, or has looked. */
void link_told(struct program_link *link, uint32_t calls);

/* Readable whenever a call has ended that the caller does not know of. */
int link_notices(struct program_link *link);

#endif
