#include "client/mpi/node_ranks.h"

#include "client/mpi/job.h"
#include "client/mpi/real.h"

#define PIECE ((size_t)1 << 30) /* counts are int */
#define TAG 1

static size_t piece_of(size_t left)
{
    return left < PIECE ? left : PIECE;
}

int node_send(const struct communicator *c, uint32_t to, const void *at, size_t bytes)
{
    const char *from = at;

    for (size_t n; bytes > 0; bytes -= n, from += n) {
        n = piece_of(bytes);
        if (real.Send(from, (int)n, mpi.byte, (int)to, TAG, c->on_node) != MPI_SUCCESS)
            return -1;
    }
    return 0;
}

int node_receive(const struct communicator *c, uint32_t from, void *at, size_t bytes)
{
    char *to = at;

    for (size_t n; bytes > 0; bytes -= n, to += n) {
        n = piece_of(bytes);
        if (real.Recv(to, (int)n, mpi.byte, (int)from, TAG, c->on_node, MPI_STATUS_IGNORE) !=
            MPI_SUCCESS)
            return -1;
    }
    return 0;
}

int node_broadcast(const struct communicator *c, void *at, size_t bytes)
{
    char *piece = at;

    for (size_t n; bytes > 0; bytes -= n, piece += n) {
        n = piece_of(bytes);
        if (real.Bcast(piece, (int)n, mpi.byte, 0, c->on_node) != MPI_SUCCESS)
            return -1;
    }
    return 0;
}

int node_reduce(const struct communicator *c, const struct vector *v, const void *send,
                void *receive)
{
    const char *from = send;
    char *to = receive;
    size_t left = v->count;
    bool in_place = communicator_leads(c) && send == receive;

    for (size_t n; left > 0; left -= n) {
        n = piece_of(left);
        if (real.Reduce(in_place ? MPI_IN_PLACE : from, to, (int)n, v->type, v->op, 0,
                        c->on_node) != MPI_SUCCESS)
            return -1;
        from += n * v->type_size;
        if (to != NULL)
            to += n * v->type_size;
    }
    return 0;
}

int node_meet(const struct communicator *c)
{
    return real.Barrier(c->on_node) == MPI_SUCCESS ? 0 : -1;
}

int node_failed(struct torus_error *error)
{
    static const struct torus_error failure = {.code = TORUS_ERROR_IO,
                                               .text = "MPI has failed among the ranks of a node"};

    *error = failure;
    job_lock();
    job_fail(error);
    job_unlock();
    return -1;
}

int node_settle(const struct communicator *c, int result, struct torus_error *error)
{
    if (node_broadcast(c, &result, sizeof result) != 0 ||
        (result != 0 && node_broadcast(c, error, sizeof *error) != 0))
        return node_failed(error);
    return result;
}
