#include "daemon/torusd/net/connector/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/lib/net/addresses/address.h"
#include "daemon/lib/net/sockets/hops.h"

#define SYN_RETRIES 2 /* about seven seconds */
/* from linux/in6.h, which cannot be included beside netinet/in.h */
#define IPV6_PREFER_SRC_PUBLIC 0x2

struct dial {
    uv_poll_t poll;
    int fd; /* -1: handed over */
    sa_family_t family;
    struct dial_user user;
};

static void on_closed(uv_handle_t *handle)
{
    struct dial *dial = handle->data;
    const struct dial_user user = dial->user;

    free(dial);
    user.closed(user.closed_context);
}

void dial_cancel(struct dial *dial)
{
    (void)uv_poll_stop(&dial->poll);
    if (dial->fd >= 0)
        (void)close(dial->fd);
    uv_close((uv_handle_t *)&dial->poll, on_closed);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct dial *dial = poll->data;
    char host[ADDRESS_TEXT_SIZE] = "";
    int fd = dial->fd, error = 0;
    socklen_t size = sizeof error;
    bool farther = false;

    (void)status, (void)events;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (error == 0) {
        hops_drop_errors(fd, dial->family);
        (void)uv_poll_stop(poll);
        dial->fd = -1;
    } else {
        farther = hops_exceeded(fd, host, sizeof host);
    }
    dial_cancel(dial); /* frees it in the next iteration of the loop */
    dial->user.done(dial->user.context, error == 0 ? fd : -1, error, farther ? host : NULL);
}

/* Prefers a permanent source address: temporary (privacy) addresses are removed after some days, and the link
 * would go down with its address. */
static void prefer_lasting_source(int fd, sa_family_t family)
{
    const int lasting = IPV6_PREFER_SRC_PUBLIC;

    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_ADDR_PREFERENCES, &lasting, sizeof lasting);
}

static int open_socket(const struct sockaddr *address, const struct socket_options *options,
                       const char *interface, struct reserve *reserve)
{
    const int retries = SYN_RETRIES;
    int fd;

    do
        fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    while (fd < 0 && reserve_release_one(reserve, errno));
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &retries, sizeof retries);
    hops_keep_errors(fd, address->sa_family);
    prefer_lasting_source(fd, address->sa_family);
    if (socket_set_up(options, fd, address->sa_family, interface) == 0 &&
        (connect(fd, address, address_length(address)) == 0 || errno == EINPROGRESS))
        return fd;
    int error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

struct dial *dial_start(uv_loop_t *loop, const struct sockaddr *address,
                        const struct socket_options *options, const char *interface,
                        struct reserve *reserve, const struct dial_user *user)
{
    struct dial *dial = calloc(1, sizeof *dial);
    int error, fd;

    if (dial == NULL)
        return NULL;
    fd = open_socket(address, options, interface, reserve);
    error = fd < 0 ? errno : -uv_poll_init(loop, &dial->poll, fd);
    if (error != 0) {
        if (fd >= 0)
            (void)close(fd);
        free(dial);
        errno = error;
        return NULL;
    }
    dial->fd = fd;
    dial->family = address->sa_family;
    dial->user = *user;
    dial->poll.data = dial;
    (void)uv_poll_start(&dial->poll, UV_WRITABLE, on_ready);
    return dial;
}
