#include "client/libtorus/common/socket.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/libtorus/common/fail.h"

#define CONNECT_SECONDS 5 /* how long to wait for a daemon whose queue is full */

const char *torus_default_socket(void)
{
    const char *path = getenv("TORUS_SOCKET");
    return path != NULL && path[0] != '\0' ? path : TORUS_DEFAULT_SOCKET;
}

/* Names the group whose members may connect, and what makes this user one of them. */
static int not_in_group(const char *path, gid_t group, struct torus_error *e)
{
    char storage[4096];
    struct group entry, *found = NULL;

    if (getgrgid_r(group, &entry, storage, sizeof storage, &found) == 0 && found != NULL)
        return fail(
            e, TORUS_ERROR_NO_DAEMON,
            "permission denied: only members of the group %.60s may connect to the daemon at "
            "%s: run 'sudo usermod -aG %.60s $USER', and log in again",
            found->gr_name, path, found->gr_name);
    return fail(e, TORUS_ERROR_NO_DAEMON,
                "permission denied: only members of group %u may connect to the daemon at %s",
                (unsigned)group, path);
}

static int no_daemon(const char *path, int cause, struct torus_error *e)
{
    struct stat st;

    switch (cause) {
    case ENOENT:
    case ENOTDIR:
        return fail(e, TORUS_ERROR_NO_DAEMON, "no daemon at %s: there is no such socket", path);
    case ECONNREFUSED:
        return fail(e, TORUS_ERROR_NO_DAEMON,
                    "no daemon at %s: the socket exists, but no process listens on it", path);
    case EACCES:
    case EPERM:
        if (stat(path, &st) == 0 && (st.st_mode & S_IWOTH) == 0)
            return not_in_group(path, st.st_gid, e);
        return fail(e, TORUS_ERROR_NO_DAEMON,
                    "permission denied: this user may not connect to the daemon at %s", path);
    case EAGAIN:
        return fail(e, TORUS_ERROR_NO_DAEMON,
                    "the daemon at %s has not accepted the connection within %d s", path,
                    CONNECT_SECONDS);
    default:
        return fail(e, TORUS_ERROR_NO_DAEMON, "cannot connect to the daemon at %s: %s", path,
                    strerror(cause));
    }
}

char *socket_path(const char *path, const char *suffix)
{
    char host[HOST_NAME_MAX + 1] = "", *out = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&out, &size);

    if (f == NULL)
        return NULL;
    (void)gethostname(host, sizeof host - 1);
    for (const char *at = path; *at != '\0'; at++)
        if (at[0] == '%' && at[1] == 'h') {
            (void)fputs(host, f);
            at++;
        } else {
            (void)fputc(*at, f);
        }
    (void)fputs(suffix, f);
    if (fclose(f) == 0)
        return out;
    free(out);
    return NULL;
}

int socket_connect(const char *path, int type, struct torus_error *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval timeout = {.tv_sec = CONNECT_SECONDS};
    int r, fd;

    if (strlen(path) >= sizeof address.sun_path)
        return fail(e, TORUS_ERROR_USAGE,
                    "the socket path is too long, %zu bytes of at most %zu: %s", strlen(path),
                    sizeof address.sun_path - 1, path);
    memcpy(address.sun_path, path, strlen(path));

    fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(e, TORUS_ERROR_IO, "cannot create a socket: %s", strerror(errno));
    /* On a Unix socket the send timeout also applies to connect(). */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    do
        r = connect(fd, (const struct sockaddr *)&address, sizeof address);
    while (r != 0 && errno == EINTR);
    if (r == 0)
        return fd;
    r = errno;
    (void)close(fd);
    return no_daemon(path, r, e);
}
