#include "client/torch/operation.h"

namespace torus_torch
{

Kind kind_of(Code code)
{
    switch (code) {
    case Code::send:
        return Kind::send;
    case Code::receive:
    case Code::receive_any:
        return Kind::receive;
    default:
        return Kind::collective;
    }
}

const char *name_of(Code code)
{
    static const char *const names[] = {
        "broadcast", "allreduce", "reduce",  "reduce_scatter", "allgather", "allgatherv",
        "gather",    "gather",    "scatter", "scatter",        "alltoall",  "alltoallv",
        "barrier",   "send",      "receive", "receive",
    };

    return names[size_t(code)];
}

int Operation::start(torus_group *g, torus_call **call, torus_error *error) const
{
    switch (code) {
    case Code::broadcast:
        return torus_start_broadcast(g, receive, size, peer, call, error);
    case Code::allreduce:
        return torus_start_allreduce(g, send, receive, size, type, op, call, error);
    case Code::reduce:
        return torus_start_reduce(g, send, receive, size, type, op, peer, call, error);
    case Code::reduce_scatter:
        return torus_start_reduce_scatter(g, send, receive, counts, type, op, call, error);
    case Code::allgather:
        return torus_start_allgather(g, send, receive, size, call, error);
    case Code::allgatherv:
        return torus_start_allgatherv(g, send, receive, received.bytes, received.offset, call,
                                      error);
    case Code::gather:
        return torus_start_gather(g, send, receive, size, peer, call, error);
    case Code::scatter:
        return torus_start_scatter(g, send, receive, size, peer, call, error);
    case Code::gatherv:
        return torus_start_gatherv(g, send, size, receive, received.bytes, received.offset, peer,
                                   call, error);
    case Code::scatterv:
        return torus_start_scatterv(g, send, sent.bytes, sent.offset, receive, size, peer, call,
                                    error);
    case Code::alltoall:
        return torus_start_alltoall(g, send, receive, size, call, error);
    case Code::alltoallv:
        return torus_start_alltoallv(g, send, sent.bytes, sent.offset, receive, received.bytes,
                                     received.offset, call, error);
    case Code::barrier:
        return torus_start_barrier(g, call, error);
    case Code::send:
        return torus_start_send(g, send, size, peer, tag, call, error);
    case Code::receive:
        return torus_start_receive(g, receive, size, peer, tag, call, error);
    default:
        return torus_start_receive_any(g, receive, size, tag, from, call, error);
    }
}

} // namespace torus_torch
