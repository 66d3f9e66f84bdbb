/* Pipes of the kernel. The body of a long frame that only passes goes from a socket into a pipe, and from there into
 * another socket (splice()), so that nobody copies it. Until it leaves, it lies in the pipe as other bodies lie in slabs:
 * in a slab without memory (SLAB_IN_PIPE), whose addresses tell the order of the bytes. They must leave in that order.
 *
 * There are at most PIPES_A_PORT pipes for each port, each with at most one body. When no pipe is free, or a pipe takes
 * no more (its pages may be far from full), the rest of the body is read into slabs. So a link never waits for another
 * one. A pipe goes back when the last reference to its slab is dropped; if bytes are left in it, it is closed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/lib/base/slab.h"

#define PIPES_A_PORT 3u

struct pipes {
    struct pipe *first; /* all of them */
    unsigned count, most;
};

struct pipe {
    struct pipe *next;
    struct pipes *pipes;
    struct slab *slab; /* NULL: the pipe is free */
    int in, out;
    uint8_t *base;       /* addresses that nothing can read */
    uint32_t put, taken; /* bytes */
};

/* Initialises *p, for that many ports. */
void pipes_init(struct pipes *p, unsigned ports);
/* Closes all pipes; no references to slabs are left. */
void pipes_close(struct pipes *p);

/* Returns an empty pipe, with a reference to its slab that the caller drops; NULL if there is none now. */
struct pipe *pipes_take(struct pipes *p);
/* Returns the pipe in which the bytes with this address are, or NULL: they are in memory. */
struct pipe *pipes_find(const struct pipes *p, const void *address);

/* Moves up to `most` bytes from a socket into the pipe, and sets *bytes to them, without a reference. Returns 1, 0 at
 * the end of the stream, or -1 with errno: EAGAIN if the socket has no bytes or the pipe has no room. */
int pipe_fill(struct pipe *pipe, int fd, uint32_t most, struct extent *bytes);
/* Moves `length` bytes, which begin at `address`, from the pipe into a socket; `more` follow at once. Returns how many it
 * took, at least 1; or -1 with errno. */
ssize_t pipe_drain(struct pipe *pipe, int fd, const void *address, size_t length, bool more);
/* Copies them out of the pipe instead. Returns as pipe_drain(). */
ssize_t pipe_read(struct pipe *pipe, const void *address, size_t length, void *to);
