/* Decides which programs may connect: their number is limited by the daemon's descriptors, and for each
 * process. A program beyond that is told so, and closed. */
#include "daemon/program/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/net/local/local.h"
#include "daemon/program/connection/ending.h"
#include "daemon/program/connection/tidying.h"
#include "daemon/program/messages/calls.h"
#include "daemon/program/program.h"
#include "daemon/program/record/process_limit.h"
#include "daemon/program/shared/memory.h"

#define PROGRAMS_MOST 512u
/* The daemon accepts one program for this many descriptors that it may have. A program takes four or five. */
#define PROGRAMS_SHARE 16u
#define RINGS_A_TURN 64

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* since Linux 6.16: whether descriptors may be sent to a socket */
#endif

static void on_handle_closed(uv_handle_t *handle)
{
    struct programs *all = handle->data;

    all->handles--;
    programs_release(all);
}

static void on_listener_closed(void *context)
{
    struct programs *all = context;

    all->handles--;
    programs_release(all);
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

static int may_connect(const struct programs *all, struct program *p, struct error *e)
{
    const struct access_rules *rules = all->set.access;

    if (access_check(rules, access_of_peer(rules, p->fd), ACCESS_EXCHANGE, e) != 0)
        return -1;
    if (all->reserve.held == 0)
        return error_set(e, ERROR_BUSY,
                         "this daemon has no file descriptors left; try again, or raise its limit "
                         "(LimitNOFILE, ulimit -n)");
    if (programs_may_connect(p, e) != 0)
        return -1;
    if (shares_take(all->set.shares, SHARE_PROGRAMS, p->user, 1, e) != 0)
        return -1;
    p->counted = true;
    return 0;
}

static void on_accepted(void *context, int fd)
{
    struct programs *all = context;
    struct program *p;
    struct error e;

    if (all->closing) {
        (void)close(fd);
        return;
    }
    p = program_new(all, fd);
    if (p == NULL)
        return;
    p->next = all->first;
    all->first = p;
    if (may_connect(all, p, &e) != 0)
        program_refuse(p, &e);
    else
        programs_watch(all);
}

static void on_rings(uv_poll_t *poll, int status, int events)
{
    struct programs *all = poll->data;
    struct epoll_event ring[RINGS_A_TURN];
    int count = epoll_wait(all->doorbells_fd, ring, RINGS_A_TURN, 0);

    (void)status, (void)events;
    for (int i = 0; i < count; i++)
        /* Valid: a closed program is freed in another turn of the loop. */
        program_look(ring[i].data.ptr);
}

/* Refuses descriptors that come with messages, if the kernel can. */
static int on_socket(void *context, int fd, sa_family_t family)
{
    int no = 0;

    (void)context, (void)family;
    (void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof no);
    return 0;
}

static struct programs *fail(struct programs *all, struct error *e)
{
    (void)error_wrap(e, "programs cannot open groups at %s", all->path);
    if (all->doorbells_fd >= 0)
        (void)close(all->doorbells_fd);
    free(all);
    return NULL;
}

struct programs *programs_open(const struct programs_setup *setup, struct error *e)
{
    struct programs *all = calloc(1, sizeof *all);
    int length;

    if (all == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    all->set = *setup;
    shares_set_capacity(setup->shares, SHARE_PROGRAMS, most_programs());
    shares_set_capacity(setup->shares, SHARE_PROGRAM_MEMORY, memory_most());
    all->listener = (struct listener){.type = SOCK_SEQPACKET,
                                      .reserve = &all->reserve,
                                      .prepare = on_socket,
                                      .accepted = on_accepted,
                                      .closed = on_listener_closed,
                                      .context = all};
    all->doorbells_fd = epoll_create1(EPOLL_CLOEXEC);
    length = snprintf(all->path, sizeof all->path, "%s" PROGRAM_SOCKET_SUFFIX, setup->control);
    if (length < 0 || (size_t)length >= sizeof all->path) {
        (void)error_set(e, ERROR_USAGE, "control socket %s: a path of at most %zu bytes",
                        setup->control, sizeof all->path - sizeof PROGRAM_SOCKET_SUFFIX);
        return fail(all, e);
    }
    if (all->doorbells_fd < 0) {
        (void)error_set(e, ERROR_IO, "%s", strerror(errno));
        return fail(all, e);
    }
    if (local_listen(&all->listener, setup->loop, all->path, setup->access, &all->name, e) != 0)
        return fail(all, e);
    (void)uv_poll_init(setup->loop, &all->doorbells, all->doorbells_fd);
    (void)uv_timer_init(setup->loop, &all->tidying);
    (void)uv_timer_init(setup->loop, &all->telling);
    all->handles = 4;
    all->listener.context = all->doorbells.data = all->tidying.data = all->telling.data = all;
    (void)uv_poll_start(&all->doorbells, UV_READABLE, on_rings);
    reserve_fill(&all->reserve, 1);
    return all;
}

void programs_close(struct programs *all)
{
    all->closing = true;
    for (struct program *p = all->first; p != NULL; p = p->next)
        program_close(p);
    local_remove(&all->name);
    listener_close(&all->listener);
    (void)uv_poll_stop(&all->doorbells);
    uv_close((uv_handle_t *)&all->doorbells, on_handle_closed);
    uv_close((uv_handle_t *)&all->tidying, on_handle_closed);
    uv_close((uv_handle_t *)&all->telling, on_handle_closed);
}
