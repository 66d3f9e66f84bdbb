#include "client/libtorus/link/messages.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/libtorus/common/clock.h"
#include "client/libtorus/common/fail.h"

/* ---- Errors ---------------------------------------------------------------------------------- */

int link_fail_as(struct torus_error *e, uint32_t code, const char *text)
{
    char end[PROGRAM_TEXT_SIZE];

    copy_text(end, sizeof end, text);
    if (code > TORUS_ERROR_NONE && code <= TORUS_ERROR_BUSY)
        return fail(e, (enum torus_error_code)code, "%s", end);
    return fail(e, TORUS_ERROR_PROTOCOL, "%s (error %u, unknown to this version)", end, code);
}

int link_return_error(struct program_link *link, struct torus_error *e)
{
    if (e != NULL)
        *e = link->error;
    return -1;
}

int link_lost(struct program_link *link, struct torus_error *e)
{
    (void)fail(&link->error, TORUS_ERROR_LOST, "the daemon at %s has gone away", link->path);
    return link_return_error(link, e);
}

/* ---- Messages -------------------------------------------------------------------------------- */

bool link_is_ours(const struct program_link *link)
{
    return link->process == getpid();
}

void link_refuse_children(struct program_link *link)
{
    if (link->error.code == 0 && !link_is_ours(link))
        (void)fail(
            &link->error, TORUS_ERROR_USAGE,
            "the group was opened by the parent of this process: a forked child cannot use it");
}

int link_send(struct program_link *link, enum program_kind kind, uint32_t number, uint64_t size)
{
    struct program_message m = {.magic = PROGRAM_MAGIC,
                                .version = PROGRAM_VERSION,
                                .kind = (uint32_t)kind,
                                .number = number,
                                .size = size};
    ssize_t n = -1;

    if (!link_is_ours(link))
        return -1;
    do
        n = send(link->fd, &m, sizeof m, MSG_NOSIGNAL);
    while (n < 0 &&
           (errno == EINTR || errno == EAGAIN)); /* a slow daemon has not read the last ones */
    return n == (ssize_t)sizeof m ? 0 : -1;
}

/* Stores at most `most` descriptors of a message in `fds`, and closes the others. Returns how many it has stored. */
static unsigned collect_descriptors(struct msghdr *m, int *fds, unsigned most)
{
    unsigned count = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (count < most)
                fds[count++] = fd;
            else
                (void)close(fd);
        }
    }
    return count;
}

static void close_all(int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        (void)close(fds[i]);
}

int link_receive(struct program_link *link, struct program_message *m, int *fds, unsigned count,
                 int flags, struct torus_error *e)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(PROGRAM_FDS * sizeof(int))];
    } control;
    struct iovec bytes = {m, sizeof *m};
    struct msghdr header;
    int tries = 2; /* the first ECONNRESET may only mean that the daemon left messages unread */
    ssize_t n;

    do {
        header = (struct msghdr){.msg_iov = &bytes,
                                 .msg_iovlen = 1,
                                 .msg_control = control.room,
                                 .msg_controllen = sizeof control.room};
        n = recvmsg(link->fd, &header, MSG_CMSG_CLOEXEC | flags);
    } while (n < 0 && (errno == EINTR || (errno == ECONNRESET && --tries > 0)));
    if (n <= 0)
        return link_lost(link, e);
    unsigned received = collect_descriptors(&header, fds, count);
    if (n != (ssize_t)sizeof *m || m->magic != PROGRAM_MAGIC) {
        close_all(fds, received);
        (void)fail(&link->error, TORUS_ERROR_PROTOCOL,
                   "the answer at %s is not from a torusd of this version", link->path);
        return link_return_error(link, e);
    }
    m->text[sizeof m->text - 1] = '\0';
    if (m->kind == PROGRAM_ERROR) {
        close_all(fds, received);
        (void)link_fail_as(&link->error, m->code, m->text);
        return link_return_error(link, e);
    }
    if (received == count || m->kind == PROGRAM_MEMORY_REFUSED ||
        (received == 0 && (m->kind == PROGRAM_MISSING || m->kind == PROGRAM_WAITING)))
        return 0;
    close_all(fds, received);
    (void)fail(&link->error, TORUS_ERROR_IO,
               "no file descriptors were received from the daemon at %s: this process may have too "
               "many open files (ulimit -n)",
               link->path);
    return link_return_error(link, e);
}

/* Returns the shorter of two waiting times; -1 means without limit. */
static int sooner(int a, int b)
{
    return a < 0 ? b : b < 0 || a < b ? a : b;
}

int link_await(struct program_link *link, uint64_t ms, struct waiting *w, struct torus_error *e)
{
    struct pollfd p = {link->fd, POLLIN, 0};
    int64_t now = clock_ms(), end = now + (int64_t)ms;

    for (;;) {
        int64_t left = end - now;
        int pause = ms == 0 ? -1 : left > 3600000 ? 3600000 : left > 0 ? (int)left : 0;
        int n = poll(&p, 1, w != NULL ? sooner(pause, waiting_pause(w)) : pause);
        if (n > 0)
            return 0;
        if (w != NULL)
            waiting_print(w);
        now = clock_ms();
        if (ms != 0 && end <= now)
            break;
    }
    (void)fail(&link->error, TORUS_ERROR_TIMEOUT, "the daemon at %s does not answer", link->path);
    return link_return_error(link, e);
}

int link_check(struct program_link *link, struct torus_error *e)
{
    struct program_message m;
    ssize_t n;

    link_refuse_children(link);
    if (link->error.code != 0)
        return link_return_error(link, e);
    n = recv(link->fd, &m, sizeof m, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (link_receive(link, &m, NULL, 0, MSG_DONTWAIT, e) != 0)
        return -1;
    (void)fail(&link->error, TORUS_ERROR_PROTOCOL, "the daemon at %s has sent an unsolicited reply",
               link->path);
    return link_return_error(link, e);
}
