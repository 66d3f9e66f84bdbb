/* The neighbors of a rank in the topology of its communicator: Cartesian, graph or distributed graph. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct communicator;

/* A block that this rank sends to a neighbor or receives from one. */
struct edge {
    uint32_t place; /* of the neighbor */
    uint32_t index; /* of the block in the buffer */
    uint32_t order; /* among the blocks between the same two ranks */
};

/* The edges in one direction, by place, and those of a place in the order in which their blocks are sent. */
struct edges {
    struct edge *edge;
    uint32_t count;
    uint32_t blocks; /* in the buffer: some of them may have no neighbor (MPI_PROC_NULL) */
    bool single;     /* at most one edge for each place */
};

struct neighborhood {
    bool is_cartesian; /* all ranks can reach each other by edges */
    struct edges to, from;
    uint32_t most; /* edges of a rank in one direction, of all ranks */
    bool repeats;  /* a rank has several edges to another one */
};

/* Reads the neighborhood of the communicator, unless it has been read; all ranks make this call. Returns 0 with
 * c->neighborhood, 1 if the communicator has no topology or MPI fails, or -1 if a rank has no memory. */
int neighborhood_read(struct communicator *c);
/* NULL does nothing. */
void neighborhood_free(struct neighborhood *n);
