/* A connection from its beginning: its limits, and the messages of its program. */
#include "daemon/torusd/program/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "proto/elapsed.h"
#include "proto/text.h"

#define PROCESS_MOST 32u /* groups that one process may have open */
/* Further connections that are about to open a group, or have just left one. */
#define PROCESS_SPARE 8u

static int too_many(struct error *e)
{
    return error_set(e, ERROR_BUSY, "a process can have at most %u groups open: close some",
                     PROCESS_MOST);
}

/* Checks that the program's process may open one more group. Returns 0, or -1 with *e. */
static int programs_may_open(const struct program *p, struct error *e)
{
    return programs_of_process(p->programs, p->process, PROGRAM_OPENING) < PROCESS_MOST
               ? 0
               : too_many(e);
}

int programs_may_connect(const struct program *p, struct error *e)
{
    return programs_of_process(p->programs, p->process, PROGRAM_STRANGER) <=
                   PROCESS_MOST + PROCESS_SPARE
               ? 0
               : too_many(e);
}

#define STRANGER_MS 10000u /* how long a program may take to say which group it opens */
#define TIDY_MS 1000

/* --- time limits --- */

/* Closes connections that have been silent too long, and releases memory that programs do not use. */
static void on_tidying(uv_timer_t *timer)
{
    struct programs *programs = timer->data;
    uint64_t now = uv_now(timer->loop);
    bool more = false;

    for (struct program *p = programs->first; p != NULL; p = p->next) {
        if (p->state == PROGRAM_STRANGER && elapsed(p->connected_at, now) >= STRANGER_MS) {
            log_warning(
                "closing the connection of a program that has not opened a group within %u s",
                STRANGER_MS / 1000);
            program_close(p);
        }
        more |= p->state == PROGRAM_STRANGER;
        more |= program_tidy_memory(p, now);
    }
    if (!more)
        (void)uv_timer_stop(timer);
}

void programs_watch(struct programs *programs)
{
    if (!uv_is_active((uv_handle_t *)&programs->tidying))
        (void)uv_timer_start(&programs->tidying, on_tidying, TIDY_MS, TIDY_MS);
}

#define TELL_MS 500

/* --- telling programs which nodes have not opened their groups ---
 *
 * A program is told only when the answer has changed, so that the socket of a program that does not read does not fill
 * up. */

static bool is_told(const struct program *p)
{
    return p->state == PROGRAM_OPENING && p->tells && p->group != NULL;
}

static void tell_program(struct program *p)
{
    struct program_message m = {
        .magic = PROGRAM_MAGIC, .version = PROGRAM_VERSION, .kind = PROGRAM_WAITING};

    m.number = group_missing(p->group, m.text, sizeof p->told.list);
    if (p->told.said && m.number == p->told.count && strcmp(m.text, p->told.list) == 0)
        return;
    if (program_send(p, &m, NULL, 0) != 0)
        return;
    p->told.said = true;
    p->told.count = m.number;
    memcpy(p->told.list, m.text, sizeof p->told.list);
}

static void on_telling(uv_timer_t *timer)
{
    struct programs *programs = timer->data;
    bool any = false;

    for (struct program *p = programs->first; p != NULL; p = p->next) {
        if (is_told(p))
            tell_program(p);
        any |= is_told(p);
    }
    if (!any)
        (void)uv_timer_stop(timer);
}

/* Starts telling programs, because one has asked which nodes it waits for. */
static void programs_tell(struct programs *programs)
{
    if (!uv_is_active((uv_handle_t *)&programs->telling))
        (void)uv_timer_start(&programs->telling, on_telling, TELL_MS, TELL_MS);
}

/* --- messages about memory: their functions return 0, or -1 if the program is gone --- */

static int refuse_memory(struct program *p, uint32_t number, const struct error *e)
{
    struct program_message refused = program_message_of(PROGRAM_MEMORY_REFUSED, number);

    refused.code = (uint32_t)e->code;
    (void)snprintf(refused.text, sizeof refused.text, "%s", e->text);
    return program_answer(p, &refused, NULL, 0);
}

static int take_memory(struct program *p, const struct program_message *m)
{
    struct program_message file;
    uint32_t number = 1;
    struct error e;

    if (p->file >= 0)
        return program_break_rules(p, "has requested two memories at the same time");
    while (number <= PROGRAM_MEMORIES && p->memory[number - 1] != NULL)
        number++;
    if (number > PROGRAM_MEMORIES) {
        (void)error_set(&e, ERROR_BUSY,
                        "a program shares at most %u memories with the daemon: free some, or "
                        "allocate larger ones",
                        PROGRAM_MEMORIES);
        return refuse_memory(p, 0, &e);
    }
    if (program_count_memory(p, m->size, &e) != 0)
        return refuse_memory(p, number, &e);
    if ((p->file = memory_file(m->size, &e)) < 0) {
        program_uncount_memory(p, m->size);
        return refuse_memory(p, number, &e);
    }
    p->file_number = number;
    p->file_size = m->size;
    p->file_used = p->file_late = 0;
    p->file_used_at = uv_now(p->programs->set.loop);
    programs_watch(p->programs);
    file = program_message_of(PROGRAM_FILE, number);
    return program_answer(p, &file, &p->file, 1);
}

static int take_ready(struct program *p, const struct program_message *m)
{
    struct program_message taken = program_message_of(PROGRAM_MEMORY_TAKEN, m->number);
    struct program_memory *memory;
    struct error e;

    if (p->file < 0 && m->number != 0 && m->number == p->file_late) {
        p->file_late = 0;
        (void)error_set(&e, ERROR_TIMEOUT,
                        "%llu bytes of shared memory were requested, but for %u s not allocated: "
                        "the daemon has released them; allocate them again",
                        (unsigned long long)p->file_size, MEMORY_UNUSED_MS / 1000);
        return refuse_memory(p, m->number, &e);
    }
    if (p->file < 0 || m->number != p->file_number)
        return program_break_rules(p, "has allocated a memory that it has not requested");
    memory = memory_map(p->file, p->programs->set.loop, &e);
    if (memory == NULL) {
        program_drop_memory(p);
        return refuse_memory(p, m->number, &e);
    }
    (void)close(p->file);
    p->file = -1;
    p->memory[m->number - 1] = memory;
    return program_answer(p, &taken, NULL, 0);
}

/* Frees a memory, or a request whose memory the program could not allocate. */
static int take_free(struct program *p, const struct program_message *m)
{
    struct program_memory *memory;

    if (p->file >= 0 && m->number == p->file_number) {
        program_drop_memory(p);
        return 0;
    }
    if (p->file < 0 && m->number != 0 && m->number == p->file_late) {
        p->file_late = 0;
        return 0;
    }
    memory = m->number > 0 && m->number <= PROGRAM_MEMORIES ? p->memory[m->number - 1] : NULL;
    if (memory == NULL)
        return program_break_rules(p, "has freed a memory that it does not have");
    p->memory[m->number - 1] = NULL;
    program_uncount_memory(p, memory->size);
    program_memory_unref(memory);
    return 0;
}

/* --- opening and leaving a group --- */

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

static void on_received(void *context, uint64_t call, uint32_t from)
{
    const struct program *p = context;

    p->page->slot[call % PROGRAM_CALLS].from = from;
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

static int check_name(const struct program *p, const struct program_message *m, struct error *e)
{
    char clean[GROUP_NAME_SIZE];
    const size_t length = strlen(m->text);

    if (length == 0 || length >= sizeof p->name)
        return error_set(e, ERROR_USAGE, "the name of a group must have 1 to %zu bytes, not %zu",
                         sizeof p->name - 1, length);
    memcpy(clean, m->text, length + 1);
    text_clean(clean);
    if (strcmp(clean, m->text) != 0) /* else two different names could become the same */
        return error_set(
            e, ERROR_USAGE,
            "the name of a group must be UTF-8 without control characters, unlike \"%s\"", clean);
    if (strncmp(m->text, GROUP_COPY_PREFIX, strlen(GROUP_COPY_PREFIX)) == 0)
        return error_set(e, ERROR_USAGE,
                         "names of groups that begin with \"" GROUP_COPY_PREFIX
                         "\" belong to copies of trees");
    return 0;
}

static int open_group(struct program *p, const struct program_message *m, struct error *e)
{
    const struct group_client client = {p,       on_opened, on_called,  on_ended,
                                        on_late, NULL,      on_received};
    const uint32_t nodes = groups_torus(p->programs->set.groups)->nodes;
    char members[SPEC_MEMBERS_SIZE] = "";
    const struct group_options options = {.name = p->name,
                                          .members = members,
                                          .timeout_ns = m->size,
                                          .memory_wait_ns = m->number * UINT64_C(1000000),
                                          .unchecked = (m->flags & PROGRAM_UNCHECKED) != 0,
                                          .shrink = m->kind == PROGRAM_SHRINK,
                                          .user = p->user,
                                          .wait = (m->flags & PROGRAM_WAIT) != 0,
                                          .trace = (m->flags & PROGRAM_TRACE) != 0,
                                          .process = p->process > 0 ? (uint64_t)p->process : 0};

    if (check_name(p, m, e) != 0 || programs_may_open(p, e) != 0)
        return -1;
    if (p->listed != NULL && spec_members_write(p->listed, nodes, members, sizeof members, e) != 0)
        return -1;
    (void)strcpy(p->name, m->text);
    p->state = PROGRAM_OPENING;
    if (program_share(p, e) == 0)
        p->group = group_open(p->programs->set.groups, &options, &client, e);
    return p->group != NULL ? 0 : -1;
}

static int take_open(struct program *p, const struct program_message *m)
{
    struct error e;

    if (open_group(p, m, &e) != 0) {
        program_refuse(p, &e);
        return -1;
    }
    p->tells = (m->flags & PROGRAM_TELL) != 0;
    if (p->tells)
        programs_tell(p->programs);
    return 0;
}

/* Notes some members of the group that the program is about to open. Returns 0, or -1 with *e. */
static int note_members(struct program *p, const char *text, struct error *e)
{
    const uint32_t nodes = groups_torus(p->programs->set.groups)->nodes;
    char *end;

    if (p->listed == NULL && (p->listed = calloc(nodes, sizeof *p->listed)) == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a list of members");
    for (;; text = end) {
        const unsigned long long node = strtoull(text, &end, 10);
        if (end == text)
            return text[strspn(text, " ")] == '\0'
                       ? 0
                       : error_set(e, ERROR_USAGE, "a member is not a number");
        if (node >= nodes)
            return error_set(e, ERROR_USAGE, "node %llu is not in this torus, which has %u %s",
                             node, nodes, text_plural(nodes, "node", "nodes"));
        if (p->listed[node])
            return error_set(e, ERROR_USAGE, "node %llu is twice in the list of members", node);
        p->listed[node] = true;
    }
}

static int take_members(struct program *p, const struct program_message *m)
{
    struct error e;

    if (note_members(p, m->text, &e) == 0)
        return 0;
    program_refuse(p, &e);
    return -1;
}

static int take_leave(struct program *p, const struct program_message *m)
{
    struct group *group = p->group;

    (void)m;
    p->group = NULL;
    if (group != NULL)
        group_close(group);
    program_close(p);
    return -1;
}

#define MESSAGES_A_TURN 16

/* --- receiving messages --- */

static int take_notice(struct program *p, const struct program_message *m)
{
    (void)m;
    p->wants_notices = true;
    program_notify(p);
    return 0;
}

#define IN(state) (1u << (state))

/* Which messages a program may send, and in which states. */
static const struct rule {
    enum program_kind kind;
    unsigned states;
    int (*take)(struct program *p, const struct program_message *m); /* -1: the program is gone */
} rules[] = {
    {PROGRAM_MEMBERS, IN(PROGRAM_STRANGER), take_members},
    {PROGRAM_OPEN, IN(PROGRAM_STRANGER), take_open},
    {PROGRAM_SHRINK, IN(PROGRAM_STRANGER), take_open},
    {PROGRAM_MEMORY, IN(PROGRAM_MEMBER) | IN(PROGRAM_FAILED), take_memory},
    {PROGRAM_MEMORY_READY, IN(PROGRAM_MEMBER) | IN(PROGRAM_FAILED), take_ready},
    {PROGRAM_MEMORY_FREE, IN(PROGRAM_MEMBER) | IN(PROGRAM_FAILED), take_free},
    {PROGRAM_NOTICE, IN(PROGRAM_MEMBER) | IN(PROGRAM_FAILED), take_notice},
    {PROGRAM_LEAVE, IN(PROGRAM_OPENING) | IN(PROGRAM_MEMBER) | IN(PROGRAM_FAILED), take_leave},
};

static int take_message(struct program *p, const struct program_message *m)
{
    struct error e;

    if (m->magic != PROGRAM_MAGIC)
        return program_break_rules(p, "does not speak the protocol of libtorus");
    if (m->version < PROGRAM_OLDEST || m->version > PROGRAM_VERSION) {
        (void)error_set(
            &e, ERROR_PROTOCOL,
            "the program's libtorus speaks version %u of the protocol of groups, and "
            "the daemon versions %u to %u: install both from the same release of torusd",
            m->version, PROGRAM_OLDEST, PROGRAM_VERSION);
        program_refuse(p, &e);
        return -1;
    }
    p->version = m->version;
    if (memchr(m->text, 0, sizeof m->text) == NULL)
        return program_break_rules(p, "has sent a text without a terminating 0");
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].kind == m->kind && (rules[i].states & IN(p->state)) != 0)
            return rules[i].take(p, m);
    return program_break_rules(p, "has sent a message that is not allowed in its state");
}

/* Takes some messages, so that other work is not delayed. Returns false when there are no more. A message has no room for
 * descriptors, so the kernel closes those that come with it. */
static bool program_receive(struct program *p)
{
    for (int i = 0; i < MESSAGES_A_TURN; i++) {
        struct program_message message;
        struct iovec bytes = {&message, sizeof message};
        struct msghdr m = {.msg_iov = &bytes, .msg_iovlen = 1};
        ssize_t n = recvmsg(p->fd, &m, MSG_DONTWAIT);

        /* An end with messages unread is reported once, before the program's own last messages. */
        if (n < 0 && errno == ECONNRESET)
            n = recvmsg(p->fd, &m, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return false;
        if (n <= 0) {
            program_die(p);
            return false;
        }
        if (n >= (ssize_t)(2 * sizeof(uint32_t)) && message.magic == PROGRAM_MAGIC &&
            (message.version < PROGRAM_OLDEST || message.version > PROGRAM_VERSION))
            n = sizeof message; /* perhaps a version with another size */
        if (n != (ssize_t)sizeof message || (m.msg_flags & MSG_CTRUNC) != 0) {
            (void)program_break_rules(p,
                                      "has sent a message of the wrong size, or with descriptors");
            return false;
        }
        program_take_calls(p); /* first the calls that were made before the message */
        if (p->state == PROGRAM_GONE || take_message(p, &message) != 0)
            return false;
    }
    return true;
}

/* --- the connection --- */

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
