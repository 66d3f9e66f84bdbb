#include "daemon/lib/net/sockets/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void reserve_fill(struct reserve *r, unsigned wanted)
{
    r->wanted = wanted < RESERVE_MOST ? wanted : RESERVE_MOST;
    while (r->held < r->wanted) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return;
        r->fd[r->held++] = fd;
    }
}

bool reserve_release_one(struct reserve *r, int error)
{
    if ((error != EMFILE && error != ENFILE) || r->held == 0)
        return false;
    (void)close(r->fd[--r->held]);
    return true;
}

bool reserve_is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

void reserve_close(struct reserve *r)
{
    while (r->held > 0)
        (void)close(r->fd[--r->held]);
}
