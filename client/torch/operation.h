/* The arguments of a call of libtorus, so that another process can make it as well. */
#pragma once

#include <string>
#include <vector>

#include <torus/group.h>

namespace torus_torch
{

/* Calls of one kind are started in their order. Those of other kinds do not wait for them: other ranks may call first what
 * they need. */
enum class Kind { collective, send, receive, count };

enum class Code : uint32_t {
    broadcast,
    allreduce,
    reduce,
    reduce_scatter,
    allgather,
    allgatherv,
    gather,
    gatherv,
    scatter,
    scatterv,
    alltoall,
    alltoallv,
    barrier,
    send,
    receive,
    receive_any,
};

Kind kind_of(Code code);
const char *name_of(Code code);

/* Blocks in memory: block i has bytes[i] bytes, at offset[i]. */
struct Places {
    const size_t *bytes = nullptr;
    const size_t *offset = nullptr;
};

/* Ranks are those of the group that makes the call. The memory and the arrays stay where they are until the call has
 * ended. */
struct Operation {
    Code code;
    const void *send = nullptr; /* or TORUS_IN_PLACE */
    void *receive = nullptr;
    size_t size = 0;   /* bytes of this rank's block or message, or elements of a vector */
    uint32_t peer = 0; /* the root, or the other rank of a message */
    torus_type type = {};
    torus_operator op = {};
    uint64_t tag = 0;
    const size_t *counts = nullptr; /* of reduce_scatter: elements for each rank */
    /* Sizes and offsets of blocks: those received in alltoallv, allgatherv and gatherv, those sent in scatterv. */
    Places sent, received;
    uint32_t *from = nullptr; /* of receive_any */

    static Operation blocks(Code code, const void *send, void *receive, size_t size,
                            uint32_t peer = 0, uint64_t tag = 0)
    {
        Operation o = {};

        o.code = code;
        o.send = send;
        o.receive = receive;
        o.size = size;
        o.peer = peer;
        o.tag = tag;
        return o;
    }

    static Operation vectors(Code code, const void *send, void *receive, size_t count,
                             torus_type type, torus_operator op, uint32_t root = 0)
    {
        Operation o = blocks(code, send, receive, count, root);

        o.type = type;
        o.op = op;
        return o;
    }

    static Operation lists(Code code, const void *send, Places sent, void *receive, Places received)
    {
        Operation o = blocks(code, send, receive, 0);

        o.sent = sent;
        o.received = received;
        return o;
    }

    /* Starts the call. Returns 0, or -1 with *error. */
    int start(torus_group *group, torus_call **call, torus_error *error) const;
};

} // namespace torus_torch
