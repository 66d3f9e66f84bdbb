/* The calls of programs, and the memory that programs lend for them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/group_call.h"

/* Memory of a program, which the program may change at any time. It has a reference count, because frames on
 * their way refer to it after the call and even the program have ended. */
struct program_memory {
    uint8_t *data;
    uint64_t size;
    uint32_t references;
    void (*free)(struct program_memory *memory); /* called when the last reference is given back */
};

static inline struct program_memory *program_memory_ref(struct program_memory *memory)
{
    memory->references++;
    return memory;
}

/* Gives back a reference; does nothing if `memory` is NULL. */
static inline void program_memory_unref(struct program_memory *memory)
{
    if (memory != NULL && --memory->references == 0)
        memory->free(memory);
}

/* A range of bytes in that memory. If it is empty, memory may be NULL. */
struct program_area {
    struct program_memory *memory;
    uint64_t offset, size;
};

/* A program's call. It may be invalid until group_call() has checked it. */
struct group_call {
    enum group_operation operation;
    /* Bit d: dimension d; all dimensions: the whole group; GROUP_PART: the part to open. */
    uint32_t part;
    uint32_t root; /* broadcast and reduce only: number of the root */
    enum reduction_type type;
    enum reduction_operator operator;
    /* Alltoall, allgather: bytes of a block; broadcast: bytes; allreduce, reduce: elements. */
    uint64_t size;
    /* Arrays of the part's size, by member; otherwise NULL. Alltoallv has all four, in bytes; allgatherv the
     * two of `receive`; reduce_scatter receive_size, in elements. group_call() copies them. */
    const uint64_t *send_size, *send_offset, *receive_size, *receive_offset;
    /* The areas from which the sizes and offsets above count. Broadcast uses only `receive`, also at the root.
     * Reduce uses `receive` at the root only. In place, `send` is ignored, and the input lies in `receive`;
     * this works for allgather, allgatherv, allreduce, and reduce at its root. */
    struct program_area send, receive;
    bool in_place;
    uint64_t timeout_ns; /* nanoseconds; 0: none */
    /* Nanoseconds after which the program is told which members the call waits for; 0: never. */
    uint64_t late_ns;
    struct data_kind data; /* as far as the program has told it */
};
