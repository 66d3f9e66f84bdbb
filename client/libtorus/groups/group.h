/* A group, its parts, and their calls. */
#ifndef TORUSD_CLIENT_GROUP_H
#define TORUSD_CLIENT_GROUP_H

#include "client/libtorus/groups/staging.h"

#define GROUP_DIMS 8u

/* Memory of torus_memory_new(). */
struct group_memory {
    struct group_memory *next;
    struct shared_memory shared;
};

/* What a group and its parts have in common. */
struct group_session {
    struct program_link link;
    struct staging staging;
    struct group_memory *memories;
    struct torus_call *calls;               /* all, also those that may be used again */
    struct torus_call *slot[PROGRAM_CALLS]; /* whose outcome is in that slot, or will be */
    struct torus_group *parts;
    char name[PROGRAM_TEXT_SIZE];
    bool unchecked;
    uint32_t *node; /* by member, if nodes are missing; NULL: all are members */
    uint32_t members;
    unsigned dims;
    uint32_t size[GROUP_DIMS], coordinate[GROUP_DIMS]; /* of the torus; this node's */
};

struct torus_group {
    struct group_session *session;
    bool is_part;
    struct torus_group *next; /* part */
    uint32_t dimensions;      /* bit d: dimension d */
    uint32_t rank, size;
    uint32_t timeout_ms, late_ms;
    char text[PROGRAM_TEXT_SIZE];
};

/* Blocks of a buffer: `bytes` at its beginning, or block i of size[i] bytes at offset[i]. */
struct group_area {
    void *at;
    size_t bytes;                /* in total */
    const size_t *size, *offset; /* NULL: in one piece */
};

struct torus_call {
    struct torus_call *next; /* of all */
    struct torus_group *group;
    bool used;  /* the caller has it */
    bool ended; /* with this: */
    struct torus_error error;
    uint32_t number;
    struct lease lease;
    /* What is to be copied from the lease when it has succeeded. */
    struct group_area out;
    const uint8_t *from;
};

/* group_call.c */

/* What a program wants. */
struct call_setup {
    struct program_request request; /* what is not below is filled in by the caller */
    struct group_area send, receive;
    bool copies; /* the send area is the receive area, too: the daemon sends from a copy */
    /* What the receive area holds before the call: `input` bytes at `input_offset` if it is in one
     * piece, or else block `input_block` if `input` is not 0. */
    size_t input_offset, input;
    uint32_t input_block;
    size_t output; /* bytes at its beginning that are the result, if it is in one piece */
    /* Arrays for the daemon. */
    unsigned counts;
    const size_t *count[4]; /* NULL: offsets of blocks as they lie in shared memory, of */
    const struct group_area *offsets_of[4];
};

/* Starts it. Returns 0 with *call, or -1 with *e. */
int group_start(struct torus_group *group, struct call_setup *operation, struct torus_call **call,
                struct torus_error *e);

/* Gives the call back to its group. */
void group_call_free(struct torus_call *call);

/* group_memory.c */

/* The memory that this byte is in, or NULL. */
const struct shared_memory *group_memory_of(const struct group_session *session, const void *at);
void group_memory_free(struct group_session *session);

#endif
