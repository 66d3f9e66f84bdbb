#include "daemon/torusd/net/pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/frame.h"

/* Bytes of a full pipe. It has a place for each page, which holds a segment of the socket: of 1448 bytes to 32 KiB. */
#define PIPE_SIZE (512 * 1024)

void pipes_init(struct pipes *p, unsigned ports)
{
    *p = (struct pipes){.most = PIPES_A_PORT * ports};
}

static void close_pipe(struct pipe *pipe)
{
    (void)close(pipe->in);
    (void)close(pipe->out);
    (void)munmap(pipe->base, FRAME_MAX_BODY);
    free(pipe);
}

void pipes_close(struct pipes *p)
{
    while (p->first != NULL) {
        struct pipe *pipe = p->first;
        p->first = pipe->next;
        close_pipe(pipe);
    }
    p->count = 0;
}

static struct pipe *open_pipe(struct pipes *p)
{
    struct pipe *pipe = calloc(1, sizeof *pipe);
    int fd[2];

    if (pipe == NULL)
        return NULL;
    pipe->base =
        mmap(NULL, FRAME_MAX_BODY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pipe->base == MAP_FAILED || pipe2(fd, O_NONBLOCK | O_CLOEXEC) != 0) {
        if (pipe->base != MAP_FAILED)
            (void)munmap(pipe->base, FRAME_MAX_BODY);
        free(pipe);
        return NULL;
    }
    (void)fcntl(fd[1], F_SETPIPE_SZ,
                PIPE_SIZE); /* a user's pipes may be limited: then it takes less */
    pipe->out = fd[0];
    pipe->in = fd[1];
    pipe->pipes = p;
    pipe->next = p->first;
    p->first = pipe;
    p->count++;
    return pipe;
}

static void on_release(void *context)
{
    struct pipe *pipe = context, **at = &pipe->pipes->first;

    pipe->slab = NULL;
    if (pipe->put == pipe->taken)
        return;
    while (*at != pipe)
        at = &(*at)->next;
    *at = pipe->next;
    pipe->pipes->count--;
    close_pipe(pipe);
}

struct pipe *pipes_take(struct pipes *p)
{
    struct pipe *pipe = p->first;

    while (pipe != NULL && pipe->slab != NULL)
        pipe = pipe->next;
    if (pipe == NULL && p->count < p->most)
        pipe = open_pipe(p);
    if (pipe == NULL)
        return NULL;
    pipe->put = pipe->taken = 0;
    pipe->slab = slab_without_pool(0, on_release, pipe);
    if (pipe->slab == NULL)
        return NULL;
    pipe->slab->where = SLAB_IN_PIPE;
    return pipe;
}

struct pipe *pipes_find(const struct pipes *p, const void *address)
{
    const uintptr_t at = (uintptr_t)address;
    struct pipe *pipe = p->first;

    while (pipe != NULL &&
           (at < (uintptr_t)pipe->base || at - (uintptr_t)pipe->base >= FRAME_MAX_BODY))
        pipe = pipe->next;
    return pipe;
}

int pipe_fill(struct pipe *pipe, int fd, uint32_t most, struct extent *bytes)
{
    const uint32_t room = FRAME_MAX_BODY - pipe->put;
    const ssize_t moved = splice(fd, NULL, pipe->in, NULL, most < room ? most : room,
                                 SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

    if (moved <= 0)
        return (int)moved;
    *bytes = (struct extent){pipe->slab, pipe->base + pipe->put, (uint32_t)moved};
    pipe->put += (uint32_t)moved;
    return 1;
}

/* Whether these bytes are the next ones in the pipe. */
static bool are_next(const struct pipe *pipe, const void *address, size_t length)
{
    return pipe->base + pipe->taken == address && length <= pipe->put - pipe->taken;
}

/* Counts bytes that have left. */
static ssize_t note_taken(struct pipe *pipe, ssize_t taken)
{
    if (taken > 0)
        pipe->taken += (uint32_t)taken;
    if (taken != 0)
        return taken;
    errno = EIO;
    return -1;
}

ssize_t pipe_drain(struct pipe *pipe, int fd, const void *address, size_t length, bool more)
{
    if (!are_next(pipe, address, length))
        return note_taken(pipe, 0);
    return note_taken(pipe, splice(pipe->out, NULL, fd, NULL, length,
                                   SPLICE_F_MOVE | SPLICE_F_NONBLOCK | (more ? SPLICE_F_MORE : 0)));
}

ssize_t pipe_read(struct pipe *pipe, const void *address, size_t length, void *to)
{
    if (!are_next(pipe, address, length))
        return note_taken(pipe, 0);
    return note_taken(pipe, read(pipe->out, to, length));
}
