/* Bodies that are not read into slabs: what only passes goes into a pipe, and what belongs into the memory of a program
 * straight there. */
#include <sys/uio.h>

#include "daemon/torusd/net/internal.h"
#include "daemon/torusd/router/link.h"

void bodies_drop_pipe(struct connection *c)
{
    if (c->pipe != NULL)
        slab_unref(c->pipe->slab);
    c->pipe = NULL;
}

#define PIPED_LEAST (64u * 1024u) /* bytes: for less, system calls cost more than copies */

/* Moves what has arrived of a body that only passes into a pipe. Returns whether any bytes were moved. */
static bool move_passing(struct connection *c, uv_os_fd_t fd)
{
    uint32_t left = link_passing(c->link);
    struct extent bytes;
    bool moved = false;

    if (left < PIPED_LEAST && c->pipe == NULL)
        return false;
    if (left > 0 && c->pipe == NULL)
        c->pipe = pipes_take(&c->tcp->pipes);
    while (left > 0 && c->pipe != NULL && c->link != NULL &&
           pipe_fill(c->pipe, fd, left, &bytes) > 0) {
        moved = true;
        left -= bytes.length;
        (void)slab_ref(bytes.slab);
        if (left == 0)
            bodies_drop_pipe(c);
        link_passed(c->link, &bytes);
        slab_unref(bytes.slab);
    }
    if (!moved) /* although bytes have arrived: it is full, or the body does not pass any more */
        bodies_drop_pipe(c);
    return moved;
}

#define PLACED_READS 8u /* at once, before other connections have their turn */

/* Reads what has arrived of bodies whose bytes have places, with the next heads. Returns whether any bytes were read. If
 * there are none, or the read fails, the caller's read finds out. */
static bool read_into_place(struct connection *c, uv_os_fd_t fd)
{
    struct places places;
    bool any = false;

    for (unsigned i = 0; i < PLACED_READS && c->link != NULL && !link_held(c->link); i++) {
        struct iovec to[PLACES_MOST];
        size_t room = 0;
        if (!link_places(c->link, &places))
            break;
        for (unsigned k = 0; k < places.count; k++) {
            to[k] = (struct iovec){places.run[k].data, places.run[k].length};
            room += to[k].iov_len;
        }
        const ssize_t length = readv(fd, to, (int)places.count);
        if (length <= 0)
            break;
        any = true;
        link_placed(c->link, &places, (size_t)length);
        if ((size_t)length < room)
            break;
    }
    return any;
}

bool bodies_move(struct connection *c)
{
    uv_os_fd_t fd;

    if (c->link == NULL || c->cipher != NULL || uv_fileno((uv_handle_t *)&c->socket, &fd) != 0)
        return false;
    return move_passing(c, fd) || read_into_place(c, fd);
}
