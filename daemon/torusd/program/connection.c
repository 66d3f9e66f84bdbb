/* Connections: what programs are sent, and how a connection ends. */
#include "daemon/torusd/program/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"

void programs_release(struct programs *programs)
{
    if (!programs->closing || programs->handles > 0 || programs->first != NULL)
        return;
    (void)close(programs->doorbells_fd);
    reserve_close(&programs->reserve);
    free(programs->counts);
    free(programs);
}

/* Removes a connection from the list after all its handles were closed. The caller frees it. */
static void programs_forget(struct program *p)
{
    struct programs *programs = p->programs;

    for (struct program **at = &programs->first; *at != NULL; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            break;
        }
    reserve_fill(&programs->reserve, programs->closing ? 0 : 1);
    programs_release(programs);
}

/* The process is 0 if the daemon cannot see it, in another namespace. */
unsigned programs_of_process(const struct programs *programs, pid_t process,
                             enum program_state least)
{
    unsigned count = 0;

    for (const struct program *p = programs->first; p != NULL; p = p->next)
        count +=
            process > 0 && p->process == process && p->state >= least && p->state != PROGRAM_GONE;
    return count;
}

int program_send(struct program *p, const struct program_message *message, const int *fds,
                 unsigned count)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(PROGRAM_FDS * sizeof(int))];
    } control = {.room = {0}};
    struct iovec bytes = {(void *)(uintptr_t)message, sizeof *message};
    struct msghdr m = {.msg_iov = &bytes, .msg_iovlen = 1};

    if (count > 0) {
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(count * sizeof *fds);
        memcpy(CMSG_DATA(&control.header), fds, count * sizeof *fds);
        m.msg_control = control.room;
        m.msg_controllen = CMSG_SPACE(count * sizeof *fds);
    }
    if (sendmsg(p->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof *message)
        return 0;
    return errno == EPIPE || errno == ECONNRESET ? 0 : -1;
}

struct program_message program_message_of(enum program_kind kind, uint32_t number)
{
    return (struct program_message){.magic = PROGRAM_MAGIC,
                                    .version = PROGRAM_VERSION,
                                    .kind = (uint32_t)kind,
                                    .number = number};
}

static void on_closed(uv_handle_t *handle)
{
    struct program *p = handle->data;

    if (--p->handles > 0)
        return;
    programs_forget(p);
    free(p->listed);
    free(p);
}

void program_close(struct program *p)
{
    struct group *group = p->group;

    if (p->state == PROGRAM_GONE)
        return;
    p->state = PROGRAM_GONE;
    if (p->counted)
        shares_give(p->programs->set.shares, SHARE_PROGRAMS, p->user, 1);
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

/* Fails the group of a program that may still run: it may have closed its connection by mistake, together with
 * other descriptors. Its page then says that the group has failed, which ends the calls that it waits for and
 * those that it still makes. Otherwise the program would wait for ever: the daemon does not take its calls any
 * more, and the number of its doorbell may be another file by now. */
static void abandon_group(struct program *p, const struct error *why)
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
                    groups_rank(p->programs->set.groups));
    (void)error_blame_program(&e, groups_rank(p->programs->set.groups));
    abandon_group(p, &e);
    program_close(p);
}

void program_refuse(struct program *p, const struct error *why)
{
    struct program_message m = {.magic = PROGRAM_MAGIC,
                                .version = PROGRAM_VERSION,
                                .kind = PROGRAM_ERROR,
                                .code = (uint32_t)why->code};

    log_warning("a program was rejected: %s", why->text);
    abandon_group(p, why);
    (void)snprintf(m.text, sizeof m.text, "%s", why->text);
    (void)program_send(p, &m, NULL, 0);
    program_close(p);
}

int program_break_rules(struct program *p, const char *what)
{
    struct error e;

    (void)error_set(&e, ERROR_PROTOCOL, "the program of node %u %s",
                    groups_rank(p->programs->set.groups), what);
    (void)error_blame_program(&e, groups_rank(p->programs->set.groups));
    program_refuse(p, &e);
    return -1;
}

int program_answer(struct program *p, const struct program_message *message, const int *fds,
                   unsigned count)
{
    if (program_send(p, message, fds, count) != 0)
        return program_break_rules(p, "does not read the answers of the daemon");
    return 0;
}
