/* Decides which programs may connect: their number is limited by the daemon's descriptors, and for each
 * process. A further program gets an error, and its connection is closed. */
#include "daemon/torusd/program/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/net/access.h"
#include "daemon/lib/net/unix_socket.h"
#include "daemon/torusd/program/program.h"

#define PROGRAMS_MOST 512u
/* The daemon accepts one program for this many descriptors that it may have. A program takes four or five. */
#define PROGRAMS_SHARE 16u
#define RINGS_A_TURN 64

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* since Linux 6.16: whether descriptors may be sent to a socket */
#endif

static void on_handle_closed(uv_handle_t *handle)
{
    struct programs *programs = handle->data;

    programs->handles--;
    programs_release(programs);
}

static void on_listener_closed(void *context)
{
    struct programs *programs = context;

    programs->handles--;
    programs_release(programs);
}

/* Leaves descriptors for links, clients and files. */
static unsigned most_programs(void)
{
    struct rlimit limit;
    rlim_t share;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return PROGRAMS_MOST;
    share = limit.rlim_cur / PROGRAMS_SHARE;
    return share < PROGRAMS_MOST ? (unsigned)share : PROGRAMS_MOST;
}

static int may_connect(const struct programs *programs, struct program *p, struct error *e)
{
    const struct access_rules *rules = programs->set.access;

    if (access_check(rules, access_of_peer(rules, p->fd), ACCESS_EXCHANGE, e) != 0)
        return -1;
    if (programs->reserve.held == 0)
        return error_set(e, ERROR_BUSY,
                         "this daemon has no file descriptors left; try again, or raise its limit "
                         "(LimitNOFILE, ulimit -n)");
    if (programs_may_connect(p, e) != 0)
        return -1;
    if (shares_take(programs->set.shares, SHARE_PROGRAMS, p->user, 1, e) != 0)
        return -1;
    p->counted = true;
    return 0;
}

static void on_accepted(void *context, int fd)
{
    struct programs *programs = context;
    struct program *p;
    struct error e;

    if (programs->closing) {
        (void)close(fd);
        return;
    }
    p = program_new(programs, fd);
    if (p == NULL)
        return;
    p->next = programs->first;
    programs->first = p;
    if (may_connect(programs, p, &e) != 0)
        program_refuse(p, &e);
    else
        programs_watch(programs);
}

static void on_rings(uv_poll_t *poll, int status, int events)
{
    struct programs *programs = poll->data;
    struct epoll_event ring[RINGS_A_TURN];
    int count = epoll_wait(programs->doorbells_fd, ring, RINGS_A_TURN, 0);

    (void)status, (void)events;
    for (int i = 0; i < count; i++)
        /* The pointer is valid, because a closed program is freed in a later turn of the loop. */
        program_take_calls(ring[i].data.ptr);
}

/* Refuses descriptors that come with messages, if the kernel can. */
static int on_socket(void *context, int fd, sa_family_t family)
{
    int no = 0;

    (void)context, (void)family;
    (void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof no);
    return 0;
}

static struct programs *fail_open(struct programs *programs, struct error *e)
{
    (void)error_wrap(e, "programs cannot open groups at %s", programs->path);
    if (programs->doorbells_fd >= 0)
        (void)close(programs->doorbells_fd);
    free(programs);
    return NULL;
}

struct programs *programs_open(const struct programs_setup *setup, struct error *e)
{
    struct programs *programs = calloc(1, sizeof *programs);
    int length;

    if (programs == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for the socket of programs");
        return NULL;
    }
    programs->set = *setup;
    shares_set_capacity(setup->shares, SHARE_PROGRAMS, most_programs());
    shares_set_capacity(setup->shares, SHARE_PROGRAM_MEMORY, memory_most());
    programs->listener = (struct listener){.type = SOCK_SEQPACKET,
                                           .reserve = &programs->reserve,
                                           .prepare = on_socket,
                                           .accepted = on_accepted,
                                           .closed = on_listener_closed,
                                           .context = programs};
    programs->doorbells_fd = epoll_create1(EPOLL_CLOEXEC);
    length =
        snprintf(programs->path, sizeof programs->path, "%s" PROGRAM_SOCKET_SUFFIX, setup->control);
    if (length < 0 || (size_t)length >= sizeof programs->path) {
        (void)error_set(e, ERROR_USAGE,
                        "control socket %s: the path is too long, at most %zu bytes are possible",
                        setup->control, sizeof programs->path - sizeof PROGRAM_SOCKET_SUFFIX);
        return fail_open(programs, e);
    }
    if (programs->doorbells_fd < 0) {
        (void)error_set(e, ERROR_IO, "%s", strerror(errno));
        return fail_open(programs, e);
    }
    if (local_listen(&programs->listener, setup->loop, programs->path, setup->access,
                     &programs->name, e) != 0)
        return fail_open(programs, e);
    (void)uv_poll_init(setup->loop, &programs->doorbells, programs->doorbells_fd);
    (void)uv_timer_init(setup->loop, &programs->tidying);
    (void)uv_timer_init(setup->loop, &programs->telling);
    programs->handles = 4;
    programs->listener.context = programs->doorbells.data = programs->tidying.data =
        programs->telling.data = programs;
    (void)uv_poll_start(&programs->doorbells, UV_READABLE, on_rings);
    reserve_fill(&programs->reserve, 1);
    return programs;
}

void programs_rules_changed(const struct programs *programs)
{
    local_permit(&programs->name, programs->set.access);
}

void programs_links_changed(const struct programs *programs)
{
    for (struct program *p = programs->first; p != NULL; p = p->next)
        if (p->page != NULL)
            (void)atomic_fetch_add(&p->page->changes, 1);
}

void programs_close(struct programs *programs)
{
    programs->closing = true;
    for (struct program *p = programs->first; p != NULL; p = p->next)
        program_close(p);
    local_remove(&programs->name);
    listener_close(&programs->listener);
    (void)uv_poll_stop(&programs->doorbells);
    uv_close((uv_handle_t *)&programs->doorbells, on_handle_closed);
    uv_close((uv_handle_t *)&programs->tidying, on_handle_closed);
    uv_close((uv_handle_t *)&programs->telling, on_handle_closed);
}
