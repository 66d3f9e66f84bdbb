#include "daemon/torusd/program/messages/group_messages.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/program/connection/ending.h"
#include "daemon/torusd/program/connection/send.h"
#include "daemon/torusd/program/connection/telling.h"
#include "daemon/torusd/program/record/process_limit.h"
#include "daemon/torusd/program/shared/page.h"
#include "proto/text.h"

/* Tells a program which nodes its group leaves out. Returns 0, or -1: the program is gone. */
static int tell_missing(struct program *p, const struct group *group)
{
    const bool *gone = group_left_out(group);
    uint32_t nodes = groups_torus(p->programs->set.groups)->nodes;
    struct program_message m = program_message_of(PROGRAM_MISSING, 0);
    size_t used = 0;

    for (uint32_t node = 0; gone != NULL && node < nodes; node++) {
        if (gone[node])
            used += (size_t)snprintf(m.text + used, sizeof m.text - used, "%u ", node);
        if (used + 12 < sizeof m.text && (node + 1 < nodes || used == 0))
            continue;
        if (program_answer(p, &m, NULL, 0) != 0)
            return -1;
        used = 0;
    }
    return 0;
}

static void on_opened(void *context, struct group *group)
{
    struct program *p = context;
    const struct groups *groups = p->programs->set.groups;
    struct program_message opened = program_message_of(PROGRAM_OPENED, groups_rank(groups));
    const int fds[PROGRAM_FDS] = {p->page_file, p->doorbell, p->notices[1]};

    if (tell_missing(p, group) != 0)
        return;
    (void)torus_format(groups_torus(groups), opened.text);
    p->state = PROGRAM_MEMBER;
    if (program_answer(p, &opened, fds, PROGRAM_FDS) != 0)
        return;
    (void)close(p->page_file);
    (void)close(p->notices[1]);
    p->page_file = p->notices[1] = -1;
}

static void on_called(void *context, uint64_t call, const struct error *e)
{
    program_call_ended(context, (uint32_t)call, e);
}

static void on_late(void *context, uint64_t call, const char *whom)
{
    program_call_late(context, (uint32_t)call, whom);
}

static void on_ended(void *context, const struct error *e)
{
    struct program *p = context;

    if (p->state == PROGRAM_OPENING) {
        p->group = NULL;
        program_refuse(p, e);
    } else {
        program_fail(p, e);
    }
}

int program_take_open(struct program *p, const struct program_message *m)
{
    const struct group_client client = {p, on_opened, on_called, on_ended, on_late, NULL};
    const struct group_options options = {.name = p->name,
                                          .timeout_ns = m->size,
                                          .unchecked = (m->flags & PROGRAM_UNCHECKED) != 0,
                                          .shrink = m->kind == PROGRAM_SHRINK,
                                          .user = p->user,
                                          .wait = (m->flags & PROGRAM_WAIT) != 0,
                                          .trace = (m->flags & PROGRAM_TRACE) != 0,
                                          .process = p->process > 0 ? (uint64_t)p->process : 0};
    size_t length = strlen(m->text);
    struct error e;

    if (length == 0 || length >= sizeof p->name) {
        (void)error_set(&e, ERROR_USAGE, "the name of a group must have 1 to %zu bytes, not %zu",
                        sizeof p->name - 1, length);
        program_refuse(p, &e);
        return -1;
    }
    memcpy(p->name, m->text, length + 1);
    text_clean(p->name);
    if (strcmp(p->name, m->text) != 0) { /* else two different names could become the same */
        (void)error_set(
            &e, ERROR_USAGE,
            "the name of a group must be UTF-8 without control characters, unlike \"%s\"", p->name);
        program_refuse(p, &e);
        return -1;
    }
    if (strncmp(p->name, GROUP_COPY_PREFIX, strlen(GROUP_COPY_PREFIX)) == 0) {
        (void)error_set(&e, ERROR_USAGE,
                        "names of groups that begin with \"" GROUP_COPY_PREFIX
                        "\" belong to copies of trees");
        program_refuse(p, &e);
        return -1;
    }
    if (programs_may_open(p, &e) != 0) {
        program_refuse(p, &e);
        return -1;
    }
    p->state = PROGRAM_OPENING;
    if (program_share(p, &e) == 0)
        p->group = group_open(p->programs->set.groups, &options, &client, &e);
    if (p->group == NULL) {
        program_refuse(p, &e);
        return -1;
    }
    p->tells = (m->flags & PROGRAM_TELL) != 0;
    if (p->tells)
        programs_tell(p->programs);
    return 0;
}

int program_take_leave(struct program *p, const struct program_message *m)
{
    struct group *group = p->group;

    (void)m;
    p->group = NULL;
    if (group != NULL)
        group_close(group);
    program_close(p);
    return -1;
}
