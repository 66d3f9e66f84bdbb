/* One call of a group: turns what a program wants into a request on the page. */
#ifndef TORUSD_CLIENT_GROUP_CALL_H
#define TORUSD_CLIENT_GROUP_CALL_H

#include "client/libtorus/groups/group_record.h"

/* The call that a program wants. */
struct call_setup {
    struct program_request request; /* the caller fills in what the fields below do not imply */
    struct group_area send, receive;
    bool copies; /* the send area is also the receive area: the daemon sends from a copy */
    /* What the receive area holds before the call: `input` bytes at `input_offset` if it is in
     * one piece, otherwise block `input_block`, if `input` is not 0. */
    size_t input_offset, input;
    uint32_t input_block;
    size_t output; /* bytes at the beginning of the receive area that are the result, if it is in
                    * one piece */
    /* Arrays for the daemon. */
    unsigned counts;
    const size_t *count[4]; /* NULL: offsets of blocks as they lie in shared memory, of */
    const struct group_area *offsets_of[4];
};

/* Starts a call. Returns 0 with *call, or -1 with *e. */
int group_start(struct torus_group *group, struct call_setup *operation, struct torus_call **call,
                struct torus_error *e);

/* Gives a call back to its group. */
void group_call_free(struct torus_call *call);

#endif
