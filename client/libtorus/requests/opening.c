#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "client/libtorus/common/fail.h"
#include "client/libtorus/requests/client_watch.h"

#define DEFAULT_TIMEOUT 10000 /* ms: see torus_client_set_timeout() */

const char *torus_version(void)
{
    return TORUSD_VERSION;
}

static int open_client(struct torus_client *c, const char *path, struct torus_error *e)
{
    c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    c->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (c->epoll_fd < 0 || c->cancel_fd < 0 || c->timer_fd < 0 ||
        client_watch_always(c, c->cancel_fd) != 0 || client_watch_always(c, c->timer_fd) != 0)
        return fail(e, TORUS_ERROR_IO, "cannot create descriptors for a client: %s",
                    strerror(errno));
    return connection_open(&c->connection, path, e);
}

struct torus_client *torus_client_open(const char *path, struct torus_error *error)
{
    struct torus_client *c = calloc(1, sizeof *c);
    if (c == NULL) {
        fail_memory(error);
        return NULL;
    }
    c->connection.fd = -1;
    c->retry_ms = NEVER;
    c->timeout_ms = DEFAULT_TIMEOUT;
    if (open_client(c, path != NULL ? path : torus_default_socket(), error) != 0) {
        torus_client_close(c);
        return NULL;
    }
    return c;
}

static void close_descriptor(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

void torus_client_close(struct torus_client *client)
{
    if (client == NULL)
        return;
    connection_free(&client->connection);
    free(client->request);
    close_descriptor(client->cancel_fd);
    close_descriptor(client->timer_fd);
    close_descriptor(client->epoll_fd);
    free(client);
}

bool torus_client_is_open(const struct torus_client *client)
{
    return client->connection.fd >= 0;
}

int torus_client_fd(const struct torus_client *client)
{
    return client->epoll_fd;
}

void torus_client_set_timeout(struct torus_client *client, unsigned milliseconds)
{
    client->timeout_ms = milliseconds;
}

void torus_client_cancel(struct torus_client *client)
{
    int saved = errno;
    uint64_t one = 1;
    /* The write fails only if the counter is full, and then the descriptor is readable anyway. */
    ssize_t n = write(client->cancel_fd, &one, sizeof one);
    (void)n;
    errno = saved;
}
