/* What a program calls, and the memory that it lends for that. */
#ifndef TORUSD_GROUP_DATA_GROUP_CALL_H
#define TORUSD_GROUP_DATA_GROUP_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/group_call.h"

/* Memory of a program, which may change under us at any time. Counted: frames on their way refer to
 * it after the call and even the program have gone. */
struct program_memory {
    uint8_t *data;
    uint64_t size;
    uint32_t references;
    void (*free)(struct program_memory *memory); /* when nobody refers to it any more */
};

static inline struct program_memory *program_memory_ref(struct program_memory *memory)
{
    memory->references++;
    return memory;
}

/* NULL does nothing. */
static inline void program_memory_unref(struct program_memory *memory)
{
    if (memory != NULL && --memory->references == 0)
        memory->free(memory);
}

/* A run of bytes in it. Without bytes: memory may be NULL. */
struct program_area {
    struct program_memory *memory;
    uint64_t offset, size;
};

/* What a program calls. Whoever passes it on has checked nothing: group_call() does. */
struct group_call {
    enum group_operation operation;
    uint32_t part; /* bit d: dimension d; all of the torus' dimensions: the whole group. For
                         * GROUP_PART: the part to be made */
    uint32_t root; /* broadcast, reduce */
    enum reduction_type type;
    enum reduction_operator operator;
    uint64_t size; /* alltoall, allgather: bytes of a block; broadcast: bytes; allreduce, reduce:
                         * elements */
    /* By member, of the part's size; else NULL. Alltoallv: all four, in bytes. Allgatherv: receive
     * only. Reduce_scatter: receive_size, in elements. Copied. */
    const uint64_t *send_size, *send_offset, *receive_size, *receive_offset;
    /* What the sizes and offsets above count from. Broadcast: the buffer is `receive`, at the root,
     * too. Reduce: only the root uses `receive`. In place (allgather, allgatherv, allreduce, and reduce
     * at its root, only; for others pass a copy): `send` is ignored, the input lies in `receive`. */
    struct program_area send, receive;
    bool in_place;
    uint64_t timeout_ns; /* 0: none */
    uint64_t late_ns;    /* after which the program is told whom the call waits for; 0: never */
};

#endif
