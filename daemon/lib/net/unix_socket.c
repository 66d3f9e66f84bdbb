#include "daemon/lib/net/unix_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PATH_MOST (sizeof((struct sockaddr_un *)NULL)->sun_path - 1)

static struct sockaddr_un socket_address(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, path, strnlen(path, PATH_MOST));
    return address;
}

int local_connect(const char *path, int type)
{
    struct sockaddr_un address = socket_address(path);
    int fd, error;

    if (strlen(path) > PATH_MOST)
        return -ENAMETOOLONG;
    fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    error = errno;
    if (fd >= 0)
        (void)close(fd);
    return -error;
}

/* Makes the path free: removes a socket that a crashed daemon has left there. */
static int make_room(const char *path, int type, struct error *e)
{
    struct stat st;
    int fd;

    if (strlen(path) > PATH_MOST)
        return error_set(e, ERROR_USAGE, "the path is too long, at most %zu bytes are possible",
                         PATH_MOST);
    if (lstat(path, &st) != 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return error_set(e, ERROR_REFUSED, "%s exists and is not a socket", path);
    fd = local_connect(path, type); /* does not wait for a daemon that is stopped */
    if (fd >= 0)
        (void)close(fd);
    switch (fd < 0 ? -fd : 0) {
    case ECONNREFUSED:
        (void)unlink(path);
        return 0;
    case ENOENT: /* another process has removed it */
        return 0;
    case 0:
    case EAGAIN: /* a daemon listens, and its queue of connections is full */
        return error_set(e, ERROR_REFUSED,
                         "another daemon serves the socket %s; give this one a different --control",
                         path);
    default:
        return error_set(e, ERROR_REFUSED,
                         "cannot find out whether another daemon serves the socket %s: %s", path,
                         strerror(-fd));
    }
}

static mode_t mask_of(const struct access_rules *rules)
{
    return rules != NULL && rules->checked ? 0111 : 0117;
}

int local_listen(struct listener *l, uv_loop_t *loop, const char *path,
                 const struct access_rules *rules, struct local_name *name, struct error *e)
{
    struct sockaddr_un address = socket_address(path);
    struct stat st = {0};
    mode_t before;
    int result;

    if (make_room(path, l->type != 0 ? l->type : SOCK_STREAM, e) != 0)
        return -1;
    before = umask(mask_of(rules));
    result = listener_open(l, loop, (struct sockaddr *)&address, sizeof address);
    (void)umask(before);
    if (result != 0)
        return error_set(e, ERROR_IO, "%s", strerror(errno));
    (void)lstat(path, &st);
    *name = (struct local_name){path, st.st_dev, st.st_ino};
    return 0;
}

static bool is_in_place(const struct local_name *name)
{
    struct stat st;

    return lstat(name->path, &st) == 0 && st.st_dev == name->device && st.st_ino == name->number;
}

void local_permit(const struct local_name *name, const struct access_rules *rules)
{
    if (is_in_place(name))
        (void)chmod(name->path, 0777 & ~mask_of(rules));
}

void local_remove(const struct local_name *name)
{
    if (is_in_place(name))
        (void)unlink(name->path);
}
