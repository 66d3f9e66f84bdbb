/* Starts calls of a group: makes a request to the daemon from the arguments of an operation. */
#pragma once

#include "client/libtorus/groups/group_record.h"

/* A call to be started. */
struct call_setup {
    struct program_request request; /* the fields that do not follow from the fields below */
    struct group_area send, receive;
    bool copies; /* the send area is also the receive area: the daemon sends from a copy */
    /* The input in the receive area, if `input` is not 0: `input` bytes at `input_offset` if the area is in one piece,
     * otherwise block `input_block`. */
    size_t input_offset, input;
    uint32_t input_block;
    /* The result, if the receive area is in one piece: so many bytes at its beginning. */
    size_t output;
    /* Arrays for the daemon, with an entry for each member. Array k is count[k] or, if that is NULL, the offsets of the
     * blocks of the area offsets_of[k] in shared memory. */
    unsigned counts;
    const size_t *count[4];
    const struct group_area *offsets_of[4];
};

/* Starts a call. Returns 0 with *call, which the program ends, or -1 with *e. */
int group_start(struct torus_group *group, struct call_setup *operation, struct torus_call **call,
                struct torus_error *e);

/* Ends the use of a call: returns its staging memory, and keeps its record for a later call. */
void group_call_free(struct torus_call *call);
