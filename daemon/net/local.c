#include "daemon/net/local.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PATH_MOST (sizeof((struct sockaddr_un *)NULL)->sun_path - 1)

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, path, strnlen(path, PATH_MOST));
    return address;
}

/* Does anybody answer at this socket? */
static bool is_served(const char *path, int type)
{
    struct sockaddr_un address = address_of(path);
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    bool served = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0;

    if (fd >= 0)
        (void)close(fd);
    return served;
}

/* Is the path free? What a crash has left there is removed. */
static int make_room(const char *path, int type, struct error *e)
{
    struct stat st;

    if (strlen(path) > PATH_MOST)
        return error_set(e, ERROR_USAGE, "a path of at most %zu bytes", PATH_MOST);
    if (lstat(path, &st) != 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return error_set(e, ERROR_REFUSED, "%s exists and is not a socket", path);
    if (is_served(path, type))
        return error_set(e, ERROR_REFUSED,
                         "another daemon serves the socket %s; give this one a different --control",
                         path);
    (void)unlink(path);
    return 0;
}

int local_listen(struct listener *l, uv_loop_t *loop, const char *path,
                 const struct access_rules *rules, struct error *e)
{
    struct sockaddr_un address = address_of(path);
    mode_t before;
    int result;

    if (make_room(path, l->type != 0 ? l->type : SOCK_STREAM, e) != 0)
        return -1;
    before = umask(rules != NULL && rules->checked ? 0111 : 0117);
    result = listener_open(l, loop, (struct sockaddr *)&address, sizeof address);
    (void)umask(before);
    return result == 0 ? 0 : error_set(e, ERROR_IO, "%s", strerror(errno));
}
