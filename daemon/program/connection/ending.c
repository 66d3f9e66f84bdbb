#include "daemon/program/connection/ending.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/program/connection/send.h"
#include "daemon/program/shared/page.h"

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

/* Gives up a program that may still be there, and wait for a call or make one. It may have closed its
 * connection by mistake, among descriptors that it did not know, and reused the numbers of the descriptors that
 * it would ring. */
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
    (void)error_blame_program(&e, groups_rank(p->all->set.groups));
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

int program_break_rules(struct program *p, const char *what)
{
    struct error e;

    (void)error_set(&e, ERROR_PROTOCOL, "the program of node %u %s",
                    groups_rank(p->all->set.groups), what);
    (void)error_blame_program(&e, groups_rank(p->all->set.groups));
    program_refuse(p, &e);
    return -1;
}

int program_answer(struct program *p, const struct program_message *message, const int *fds,
                   unsigned count)
{
    if (program_send(p, message, fds, count) != 0)
        return program_break_rules(p, "does not read what it is answered");
    return 0;
}
