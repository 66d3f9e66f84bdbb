#include "topo/guest/bridge/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "topo/guest/bridge/complain.h"

#define MOST_LISTENERS 2u

static const char *listening[MOST_LISTENERS]; /* paths of sockets */
static unsigned listeners;

static void remove_sockets(void)
{
    for (unsigned i = 0; i < listeners; i++)
        (void)unlink(listening[i]);
}

void socket_set_nonblocking(int fd)
{
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int socket_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), why;

    if (fd < 0 || strlen(path) >= sizeof address.sun_path)
        die("%s: no socket, or a path of more than %zu bytes", path, sizeof address.sun_path - 1);
    (void)strcpy(address.sun_path, path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    why = errno;
    (void)close(fd);
    errno = why;
    return -1;
}

int socket_listen(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int n = snprintf(address.sun_path, sizeof address.sun_path, "%s~", path);

    if (fd < 0 || n < 0 || (size_t)n >= sizeof address.sun_path)
        die("%s: no socket, or a path of more than %zu bytes", path, sizeof address.sun_path - 2);
    if (listeners >= MOST_LISTENERS || (listeners == 0 && atexit(remove_sockets) != 0))
        die("%s: too many sockets", path);
    (void)unlink(address.sun_path);
    (void)umask(0177);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 64) != 0 ||
        rename(address.sun_path, path) != 0)
        die("%s: %s", path, strerror(errno));
    socket_set_nonblocking(fd);
    listening[listeners++] = path;
    return fd;
}
