/* One connection.
 *
 * Happy path: accepted -> OPEN -> group_open() -> opened() -> calls by the page -> LEAVE.
 *
 * Failure modes: it says nothing: closed after a while (server.c). It dies: its group is abandoned.
 * It breaks the rules: the same, and it is told so. Its group fails: it hears that of every call. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/program/internal.h"

#define LAST_TURNS 64

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* since Linux 6.5: no other process can have the number by now */
#endif

static void on_closed(uv_handle_t *handle)
{
    struct program *p = handle->data;

    if (--p->handles > 0)
        return;
    programs_forget(p);
    free(p);
}

void program_close(struct program *p)
{
    struct group *group = p->group;

    if (p->state == PROGRAM_GONE)
        return;
    p->state = PROGRAM_GONE;
    if (p->counted)
        shares_give(p->all->set.shares, SHARE_PROGRAMS, p->user, 1);
    p->group = NULL;
    if (group != NULL)
        group_close(group);
    program_unshare(p);
    (void)uv_poll_stop(&p->socket);
    (void)close(p->fd);
    uv_close((uv_handle_t *)&p->socket, on_closed);
    if (p->process_fd >= 0) {
        (void)uv_poll_stop(&p->process_end);
        (void)close(p->process_fd);
        uv_close((uv_handle_t *)&p->process_end, on_closed);
    }
}

/* A program that is still there may wait for a call, or make one: also one that has closed our connection
 * with others that it did not know, and has files of its own in the place of what it would ring. */
static void abandon(struct program *p, const struct error *why)
{
    struct group *group = p->group;

    p->group = NULL;
    if (group != NULL)
        group_abandon(group, why);
    if (p->state == PROGRAM_MEMBER)
        program_fail(p, why);
}

void program_die(struct program *p)
{
    struct error e;

    (void)error_set(&e, ERROR_CANCELLED,
                    "the program of node %u has died, or has ended without closing the group",
                    groups_rank(p->all->set.groups));
    abandon(p, &e);
    program_close(p);
}

void program_refuse(struct program *p, const struct error *why)
{
    struct program_message m = {.magic = PROGRAM_MAGIC,
                                .version = PROGRAM_VERSION,
                                .kind = PROGRAM_ERROR,
                                .code = (uint32_t)why->code};

    log_warning("a program was rejected: %s", why->text);
    abandon(p, why);
    (void)snprintf(m.text, sizeof m.text, "%s", why->text);
    (void)program_send(p, &m, NULL, 0);
    program_close(p);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events; /* recvmsg() finds out */
    (void)program_receive(poll->data);
}

/* What it has said last may be that it leaves. */
static void on_process_end(uv_poll_t *poll, int status, int events)
{
    struct program *p = poll->data;

    (void)status, (void)events;
    for (int i = 0; i < LAST_TURNS && program_receive(p); i++)
        ;
    if (p->state != PROGRAM_GONE)
        program_die(p);
}

/* A child that it has forked has its connection, too: the end of that does not tell of its death. */
static void watch_process(struct program *p)
{
    struct ucred peer = {0};
    socklen_t length = sizeof peer;

    if (getsockopt(p->fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.pid <= 0)
        return;
    p->process = peer.pid;
    length = sizeof p->process_fd;
    if (getsockopt(p->fd, SOL_SOCKET, SO_PEERPIDFD, &p->process_fd, &length) != 0)
        p->process_fd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    if (p->process_fd < 0)
        return;
    if (uv_poll_init(p->all->set.loop, &p->process_end, p->process_fd) != 0) {
        (void)close(p->process_fd);
        p->process_fd = -1;
        return;
    }
    p->handles++;
    p->process_end.data = p;
    (void)uv_poll_start(&p->process_end, UV_READABLE, on_process_end);
}

struct program *program_new(struct programs *all, int fd)
{
    struct program *p = calloc(1, sizeof *p);

    if (p == NULL || uv_poll_init(all->set.loop, &p->socket, fd) != 0) {
        free(p);
        (void)close(fd);
        return NULL;
    }
    p->all = all;
    p->fd = fd;
    p->doorbell = p->page_file = p->notices[0] = p->notices[1] = p->file = -1;
    p->connected_at = uv_now(all->set.loop);
    p->process_fd = -1;
    p->user = access_user(fd);
    p->handles = 1;
    p->socket.data = p;
    (void)uv_poll_start(&p->socket, UV_READABLE, on_readable);
    watch_process(p);
    return p;
}
