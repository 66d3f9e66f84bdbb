/* Groups, their parts and their calls. */
#pragma once

#include "client/libtorus/groups/link.h"

/* Staging memory: memory shared with the daemon, for data that the program has elsewhere. It is reused by later
 * calls. */
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

#define GROUP_DIMS 8u

/* Memory of torus_memory_new(). */
struct group_memory {
    struct group_memory *next;
    struct shared_memory shared;
};

/* The state that a group and its parts share. */
struct group_session {
    struct program_link link;
    struct staging staging;
    struct group_memory *memories;
    struct torus_call *calls; /* all records of calls, including unused ones */
    /* By slot of the page: the call whose outcome is or will be in the slot. */
    struct torus_call *slot[PROGRAM_CALLS];
    struct torus_group *parts;
    char name[PROGRAM_TEXT_SIZE];
    bool unchecked;
    bool listed;      /* opened with a list of members */
    uint32_t *node;   /* by member: its node; NULL: all nodes are members */
    uint32_t members; /* if nodes are missing */
    unsigned dims;
    uint32_t size[GROUP_DIMS], coordinate[GROUP_DIMS]; /* of the torus; of this node */
};

struct torus_group {
    struct group_session *session;
    bool is_part;
    struct torus_group *next; /* the next part of the session */
    uint32_t dimensions;      /* bit d: dimension d */
    uint32_t rank, size;
    uint32_t timeout_ms, late_ms;
    struct data_kind next_data;   /* of the next call: torus_group_describe() */
    char text[PROGRAM_TEXT_SIZE]; /* torus_group_dims() */
};

/* The blocks of a buffer: `bytes` in one piece at its beginning, or block i with size[i] bytes at offset[i]. */
struct group_area {
    void *at;
    size_t bytes;                /* in total */
    const size_t *size, *offset; /* NULL: in one piece */
};

struct torus_call {
    struct torus_call *next; /* in the list of all calls */
    struct torus_group *group;
    bool used;  /* the program has this call; otherwise the record may be reused */
    bool ended; /* the daemon has ended the call, with this error: */
    struct torus_error error;
    uint32_t number;
    struct lease lease;
    /* If the call succeeds, `from` in the lease is copied to this area of the program. */
    struct group_area out;
    const uint8_t *from;
    uint32_t *sender; /* where the sender of a message from any member is told; NULL: other calls */
};

/* A call to be started. */
struct call_setup {
    struct program_request request; /* the fields that do not follow from the fields below */
    struct group_area send, receive;
    bool copies; /* the send area is also the receive area: the daemon sends from a copy */
    /* The input in the receive area, if `input` is not 0: `input` bytes at `input_offset` if the area is in one piece,
     * otherwise block `input_block`. */
    size_t input_offset, input;
    uint32_t input_block;
    /* The result, if the receive area is in one piece: that many bytes at its beginning. */
    size_t output;
    /* In an operation with arrays: the member whose block an area in one piece is. The other members have none there. */
    uint32_t one;
    /* The sizes of the blocks that the daemon is told; NULL: those of the areas. */
    const size_t *counts;
    uint32_t *sender; /* as in struct torus_call */
};

/* Starts a call. Returns 0 with *call, which the program ends, or -1 with *e. */
int group_start(struct torus_group *group, struct call_setup *operation, struct torus_call **call,
                struct torus_error *e);
/* Ends the use of a call: returns its staging memory, and keeps its record for a later call. */
void group_call_free(struct torus_call *call);

/* Frees all staging memory. */
void staging_free(struct staging *s, struct program_link *link);
/* Frees all memory of torus_memory_new(). */
void group_memory_free(struct group_session *session);
