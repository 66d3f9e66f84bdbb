/* The first process on a node binds a socket whose name all processes know, and becomes the host. The other
 * processes, the guests, connect to it. When all have connected, the host appoints the process with the lowest rank
 * (perhaps itself) as the leader. The leader opens the group and sends the result to the host, which sends it to all
 * guests. The socket is abstract, so that its name vanishes however a process ends. Each end notices when the other
 * end is closed. */
#include "client/mpi/job/locals.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/mpi/job/job.h"
#include "client/mpi/job/statistics.h"
#include "proto/text.h"

#define AGAIN_MS 10 /* interval between attempts to connect, until the host has called listen() */

/* Messages from a guest: it has arrived. From the host: lead. From the leader and the host: the result. */
enum kind { HERE, LEAD, ENDED };

struct message {
    enum kind kind;
    uint32_t rank;            /* HERE */
    uint32_t timeout_ms;      /* LEAD */
    int result;               /* ENDED */
    struct torus_error error; /* ENDED, if the result is not 0 */
};

static int fail(struct torus_error *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int fail(struct torus_error *e, const char *format, ...)
{
    va_list arguments;

    *e = (struct torus_error){.code = TORUS_ERROR_TIMEOUT};
    va_start(arguments, format);
    (void)vsnprintf(e->text, sizeof e->text, format, arguments);
    va_end(arguments);
    return -1;
}

/* ---- Time ------------------------------------------------------------------------------------ */

static uint64_t now_ms(void)
{
    return statistics_now() / 1000000;
}

/* Returns milliseconds until `end`, but at least 1, because 0 means no timeout for libtorus. */
static uint32_t left_ms(uint64_t end)
{
    uint64_t now = now_ms();

    return now < end ? (uint32_t)(end - now) : 1;
}

static bool is_readable(int fd, uint64_t end)
{
    struct pollfd p = {fd, POLLIN, 0};
    int n;

    do
        n = poll(&p, 1, (int)left_ms(end));
    while ((n < 0 && errno == EINTR) || (n == 0 && now_ms() < end));
    return n > 0;
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Returns whether the process at the other end belongs to this user. A process of another user can bind or connect to
 * the name. */
static bool is_of_user(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == getuid();
}

static void send_message(int fd, const struct message *m)
{
    (void)send(fd, m, sizeof *m, MSG_NOSIGNAL);
}

/* Waits for a message. Returns 0, or -1 if the other end is closed. */
static int receive_message(int fd, struct message *m)
{
    ssize_t n;

    do
        n = recv(fd, m, sizeof *m, 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *m ? 0 : -1;
}

/* ---- The host -------------------------------------------------------------------------------- */

struct guest {
    int fd;
    uint32_t rank;
};

/* Waits until all other processes on this node have connected, or until `end`. Returns how many have. */
static uint32_t gather(int listener, struct guest *guests, uint64_t end)
{
    uint32_t arrived = 0;

    while (arrived + 1 < job.per_node && is_readable(listener, end)) {
        struct message m;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        if (is_of_user(fd) && is_readable(fd, end) && receive_message(fd, &m) == 0)
            guests[arrived++] = (struct guest){fd, m.rank};
        else
            (void)close(fd);
    }
    return arrived;
}

/* Appoints the process with the lowest rank as the leader. Returns the result of opening the group. */
static int appoint(struct guest *guests, uint32_t arrived, const char *name, locals_open_fn *open,
                   uint64_t end, struct torus_error *e)
{
    struct message m = {.kind = LEAD, .timeout_ms = left_ms(end)};
    const struct guest *first = NULL;

    for (uint32_t i = 0; i < arrived; i++)
        if (guests[i].rank < (first != NULL ? first->rank : job.rank))
            first = &guests[i];
    if (first == NULL) {
        job.leads = true;
        return open(name, m.timeout_ms);
    }
    send_message(first->fd, &m);
    if (receive_message(first->fd, &m) != 0)
        return fail(e, "rank %u has ended", (unsigned)first->rank);
    *e = m.error;
    return m.result;
}

static int be_host(int listener, const char *name, locals_open_fn *open, uint64_t end,
                   struct torus_error *e)
{
    struct guest *guests = calloc(job.per_node, sizeof *guests);
    struct message m = {.kind = ENDED};
    uint32_t arrived;

    if (guests == NULL)
        return fail(e, "a rank is out of memory");
    arrived = gather(listener, guests, end);
    if (arrived + 1 < job.per_node)
        m.result = fail(e, "only %u of the %u ranks of node %u %s started there in time",
                        (unsigned)arrived + 1, (unsigned)job.per_node, (unsigned)job.node,
                        text_plural(arrived + 1, "has", "have"));
    else
        m.result = appoint(guests, arrived, name, open, end, e);
    if (m.result != 0)
        m.error = *e;
    for (uint32_t i = 0; i < arrived; i++) {
        send_message(guests[i].fd, &m);
        (void)close(guests[i].fd);
    }
    free(guests);
    return m.result;
}

/* ---- The guests ------------------------------------------------------------------------------ */

/* Waits for the messages of the host without a timeout: the host has a timeout, and if it ends, its socket is
 * closed. */
static int be_guest(int fd, const struct sockaddr_un *host, socklen_t length, const char *name,
                    locals_open_fn *open, uint64_t end, struct torus_error *e)
{
    struct message m = {.kind = HERE, .rank = job.rank};

    while (connect(fd, (const struct sockaddr *)host, length) != 0) {
        if (errno != ECONNREFUSED || now_ms() >= end)
            return fail(e, "cannot reach another rank on node %u: %s", (unsigned)job.node,
                        strerror(errno));
        (void)poll(NULL, 0, AGAIN_MS);
    }
    if (!is_of_user(fd))
        return fail(e, "the socket for the ranks on node %u belongs to another user",
                    (unsigned)job.node);
    send_message(fd, &m);
    if (receive_message(fd, &m) == 0 && m.kind == LEAD) {
        job.leads = true;
        m = (struct message){.kind = ENDED, .result = open(name, m.timeout_ms)};
        if (m.result != 0)
            m.error = *e;
        send_message(fd, &m);
    }
    if (m.kind == HERE || (m.kind == ENDED && job.leads && receive_message(fd, &m) != 0))
        return fail(e, "another rank on node %u has ended", (unsigned)job.node);
    *e = m.error;
    return m.result;
}

int locals_open(const char *name, locals_open_fn *open, uint32_t timeout_ms,
                struct torus_error *error)
{
    const uint64_t end = now_ms() + timeout_ms;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), result;
    socklen_t length;

    if (fd < 0)
        return fail(error, "cannot create a socket: %s", strerror(errno));
    length = (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 +
             (socklen_t)snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "torus-%s-%u",
                                 name, (unsigned)job.node);
    if (bind(fd, (struct sockaddr *)&address, length) != 0)
        result = errno == EADDRINUSE ? be_guest(fd, &address, length, name, open, end, error)
                                     : fail(error, "cannot bind a socket: %s", strerror(errno));
    else if (listen(fd, (int)job.per_node) != 0)
        result = fail(error, "cannot listen on a socket: %s", strerror(errno));
    else
        result = be_host(fd, name, open, end, error);
    (void)close(fd);
    return result;
}
