#include "daemon/lib/service/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int notify_open(struct notify *n, const char *path, struct error *e)
{
    size_t length = path != NULL ? strlen(path) : 0;

    *n = (struct notify){.socket = -1, .address = {.sun_family = AF_UNIX}};
    if (length == 0)
        return 0;
    if (path[0] != '/' && path[0] != '@')
        return error_set(e, ERROR_USAGE, "NOTIFY_SOCKET is \"%.80s\", and not the path of a socket",
                         path);
    if (length >= sizeof n->address.sun_path)
        return error_set(
            e, ERROR_USAGE,
            "the path in NOTIFY_SOCKET is too long: %zu bytes, at most %zu are possible", length,
            sizeof n->address.sun_path - 1);
    memcpy(n->address.sun_path, path, length);
    if (path[0] == '@')
        n->address.sun_path[0] = '\0';
    /* The name of an abstract socket has no terminating zero. */
    n->length =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (path[0] == '@' ? 0 : 1));
    n->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (n->socket < 0)
        return error_set(e, ERROR_IO, "cannot open a socket to the service manager: %s",
                         strerror(errno));
    return 0;
}

void notify_close(struct notify *n)
{
    if (n->socket >= 0)
        (void)close(n->socket);
    n->socket = -1;
}

int notify_send(const struct notify *n, const char *lines)
{
    size_t length = strlen(lines);

    if (n->socket < 0)
        return 0;
    return sendto(n->socket, lines, length, MSG_NOSIGNAL, (const struct sockaddr *)&n->address,
                  n->length) == (ssize_t)length
               ? 0
               : -1;
}

uint64_t notify_watchdog(const char *usec, const char *pid)
{
    char *end;
    unsigned long long limit;

    if (usec == NULL || usec[0] < '0' || usec[0] > '9')
        return 0;
    if (pid != NULL && strtoll(pid, NULL, 10) != getpid())
        return 0; /* it is meant for another process, which has started this one */
    errno = 0;
    limit = strtoull(usec, &end, 10);
    return *end == '\0' && errno == 0 ? limit : 0;
}
