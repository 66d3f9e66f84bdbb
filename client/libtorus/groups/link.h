/* The connection of a program to its daemon for one group: messages, the page of calls, shared memory
 * (proto/program.h). */
#pragma once

#include <torus/group.h>

#include "proto/program.h"

struct program_link {
    int fd, doorbell, notices; /* -1: not open */
    unsigned forks;            /* tells a forked child from the process that has opened the link */
    bool asked;                /* the daemon may know the program's group */
    char *path;
    struct program_page *page;
    uint32_t submitted;       /* the number of the next call */
    uint32_t acknowledged;    /* number of ended calls whose end the program has learned */
    bool wants_notices;       /* the program uses link_notices() */
    struct torus_error error; /* why the link cannot be used any more, unless its code is 0 */
};

/* --- opening and closing --- */

struct link_options {
    const char *socket, *name;
    uint32_t timeout_ms, memory_timeout_ms;
    bool unchecked;
    bool leaves_out, waits;  /* leave out nodes that are down, or wait for them */
    const uint32_t *members; /* the nodes that are members; none: all nodes */
    uint32_t member_count;
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

/* --- memory --- */

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

/* --- calls on the shared page --- */

/* Leaves out the number of the next call, because its slot is in use. */
void link_skip_slot(struct program_link *link);
/* Returns the slot of the next call. The slot must be free. The caller fills in its request, and then calls
 * link_submit(). */
struct program_slot *link_next_slot(struct program_link *link);
/* Submits the call in the next slot to the daemon. */
void link_submit(struct program_link *link);
/* Returns whether call `number` has ended. If so, *e is the error of the call, or has code 0. */
bool link_has_ended(const struct program_link *link, uint32_t number, struct torus_error *e);
/* Returns the member that has sent the message of call `number`, which has received it from any member, and has ended. */
uint32_t link_sender(const struct program_link *link, uint32_t number);
/* Returns whether call `number` is under way and late, so that the daemon has named the nodes that it waits for. If
 * so, copies this text to `whom`. */
bool link_is_late(const struct program_link *link, uint32_t number, char *whom, size_t size);
/* Checks that the group can be used: it has not failed, and this process has opened it. Returns 0, or -1 with *e. */
int link_check_group(struct program_link *link, struct torus_error *e);
/* Returns how often links of the torus have changed since the group was opened. */
uint32_t link_changes(const struct program_link *link);
/* Waits at most `nanoseconds` until call `number` has ended. Returns whether it has ended. Other threads may use the
 * link meanwhile, but must not close it. */
bool link_pause(const struct program_link *link, uint32_t number, uint64_t nanoseconds);
/* Waits until call `number` or the connection has ended. Sets *e as link_has_ended() does, or to the error of the
 * connection. */
void link_wait(struct program_link *link, uint32_t number, struct torus_error *e);
/* The program has learned the end of that many more calls (may be 0). Once it knows of every ended call, this clears
 * the descriptor of link_notices(). */
void link_acknowledge(struct program_link *link, uint32_t calls);
/* Returns a descriptor that is readable while a call has ended whose end the program has not learned. */
int link_notices(struct program_link *link);

/* Checks that the connection can still be used. Returns 0, or -1 with *e. */
int link_check(struct program_link *link, struct torus_error *e);
