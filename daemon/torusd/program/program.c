#include "daemon/torusd/program/program.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/torusd/program/connection/ending.h"
#include "daemon/torusd/program/messages/messages.h"

#define LAST_TURNS 64

#ifndef SO_PEERPIDFD
/* Since Linux 6.5; a descriptor, because the number of a process may be used again. */
#define SO_PEERPIDFD 77
#endif

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events; /* recvmsg() tells what has happened */
    (void)program_receive(poll->data);
}

/* Takes the last messages of a process that has ended, because it may have sent LEAVE. */
static void on_process_end(uv_poll_t *poll, int status, int events)
{
    struct program *p = poll->data;

    (void)status, (void)events;
    for (int i = 0; i < LAST_TURNS && program_receive(p); i++)
        ;
    if (p->state != PROGRAM_GONE)
        program_die(p);
}

/* Watches the process itself: when it dies, a child that it has forked may keep the connection open. */
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
    if (uv_poll_init(p->programs->set.loop, &p->process_end, p->process_fd) != 0) {
        (void)close(p->process_fd);
        p->process_fd = -1;
        return;
    }
    p->handles++;
    p->process_end.data = p;
    (void)uv_poll_start(&p->process_end, UV_READABLE, on_process_end);
}

struct program *program_new(struct programs *programs, int fd)
{
    struct program *p = calloc(1, sizeof *p);

    if (p == NULL || uv_poll_init(programs->set.loop, &p->socket, fd) != 0) {
        free(p);
        (void)close(fd);
        return NULL;
    }
    p->programs = programs;
    p->fd = fd;
    p->doorbell = p->page_file = p->notices[0] = p->notices[1] = p->file = -1;
    p->connected_at = uv_now(programs->set.loop);
    p->process_fd = -1;
    p->user = access_user(fd);
    p->handles = 1;
    p->socket.data = p;
    (void)uv_poll_start(&p->socket, UV_READABLE, on_readable);
    watch_process(p);
    return p;
}
