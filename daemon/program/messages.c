/* Messages of programs: each is checked, and handled or refused. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/program/internal.h"
#include "proto/text.h"

#define MESSAGES_A_TURN 16
#define UNUSED_MS                                                                                  \
    10000u         /* that a program may take to allocate more of a memory that it has requested */
#define BLOCK 512u /* that st_blocks counts */

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

static struct program_message message_of(enum program_kind kind, uint32_t number)
{
    return (struct program_message){.magic = PROGRAM_MAGIC,
                                    .version = PROGRAM_VERSION,
                                    .kind = (uint32_t)kind,
                                    .number = number};
}

static int break_rules(struct program *p, const char *what)
{
    struct error e;

    (void)error_set(&e, ERROR_PROTOCOL, "the program of node %u %s",
                    groups_rank(p->all->set.groups), what);
    program_refuse(p, &e);
    return -1;
}

static int answer(struct program *p, const struct program_message *message, const int *fds,
                  unsigned count)
{
    if (program_send(p, message, fds, count) != 0)
        return break_rules(p, "does not read what it is answered");
    return 0;
}

/* ---- The group ------------------------------------------------------------------------------- */

/* Which nodes the group leaves out. Returns 0, or -1: the program is gone. */
static int tell_missing(struct program *p, const struct group *group)
{
    const bool *gone = group_gone(group);
    uint32_t nodes = groups_torus(p->all->set.groups)->nodes;
    struct program_message m = message_of(PROGRAM_MISSING, 0);
    size_t used = 0;

    for (uint32_t node = 0; gone != NULL && node < nodes; node++) {
        if (gone[node])
            used += (size_t)snprintf(m.text + used, sizeof m.text - used, "%u ", node);
        if (used + 12 < sizeof m.text && (node + 1 < nodes || used == 0))
            continue;
        if (answer(p, &m, NULL, 0) != 0)
            return -1;
        used = 0;
    }
    return 0;
}

static void on_opened(void *context, struct group *group)
{
    struct program *p = context;
    const struct groups *groups = p->all->set.groups;
    struct program_message opened = message_of(PROGRAM_OPENED, groups_rank(groups));
    const int fds[PROGRAM_FDS] = {p->page_file, p->doorbell, p->notices[1]};

    if (tell_missing(p, group) != 0)
        return;
    (void)torus_format(groups_torus(groups), opened.text);
    p->state = PROGRAM_MEMBER;
    if (answer(p, &opened, fds, PROGRAM_FDS) != 0)
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

static int take_open(struct program *p, const struct program_message *m)
{
    const struct group_client client = {p, on_opened, on_called, on_ended, on_late};
    const struct group_options options = {.name = p->name,
                                          .timeout_ns = m->size,
                                          .unchecked = (m->flags & PROGRAM_UNCHECKED) != 0,
                                          .shrink = m->kind == PROGRAM_SHRINK,
                                          .user = p->user,
                                          .wait = (m->flags & PROGRAM_WAIT) != 0,
                                          .process = p->process > 0 ? (uint64_t)p->process : 0};
    size_t length = strlen(m->text);
    struct error e;

    if (length == 0 || length >= sizeof p->name) {
        (void)error_set(&e, ERROR_USAGE, "the name of a group has 1 to %zu bytes, and not %zu",
                        sizeof p->name - 1, length);
        program_refuse(p, &e);
        return -1;
    }
    memcpy(p->name, m->text, length + 1);
    text_clean(p->name);
    if (strcmp(p->name, m->text) != 0) { /* two names could become one */
        (void)error_set(&e, ERROR_USAGE,
                        "the name of a group is UTF-8 without control characters, and not \"%s\"",
                        p->name);
        program_refuse(p, &e);
        return -1;
    }
    if (programs_may_open(p, &e) != 0) {
        program_refuse(p, &e);
        return -1;
    }
    p->state = PROGRAM_OPENING;
    if (program_share(p, &e) == 0)
        p->group = group_open(p->all->set.groups, &options, &client, &e);
    if (p->group == NULL) {
        program_refuse(p, &e);
        return -1;
    }
    p->tells = (m->flags & PROGRAM_TELL) != 0;
    if (p->tells)
        programs_tell(p->all);
    return 0;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static int refuse_memory(struct program *p, uint32_t number, const struct error *e)
{
    struct program_message refused = message_of(PROGRAM_MEMORY_REFUSED, number);

    refused.code = (uint32_t)e->code;
    (void)snprintf(refused.text, sizeof refused.text, "%s", e->text);
    return answer(p, &refused, NULL, 0);
}

static int may_allocate(struct program *p, uint64_t size, struct error *e)
{
    if (size == 0)
        return error_set(e, ERROR_USAGE, "shared memory of no bytes");
    if (shares_take(p->all->set.shares, SHARE_PROGRAM_MEMORY, p->user, size, e) != 0) {
        e->code = ERROR_MEMORY; /* nobody waits for it */
        return -1;
    }
    p->memory_size += size;
    return 0;
}

void program_uncount_memory(struct program *p, uint64_t size)
{
    shares_give(p->all->set.shares, SHARE_PROGRAM_MEMORY, p->user, size);
    p->memory_size -= size;
}

static void drop_file(struct program *p)
{
    (void)close(p->file);
    p->file = -1;
    program_uncount_memory(p, p->file_size);
}

bool program_tidy_memory(struct program *p, uint64_t now)
{
    struct stat st;

    if (p->file < 0)
        return false;
    if (fstat(p->file, &st) == 0 && (uint64_t)st.st_blocks > p->file_used) {
        p->file_used = (uint64_t)st.st_blocks;
        p->file_used_at = now;
    }
    if (now - p->file_used_at < UNUSED_MS)
        return true;
    log_warning(
        "user %u has requested %llu bytes of shared memory and not allocated more than %llu of "
        "them: they are taken back",
        p->user, (unsigned long long)p->file_size, (unsigned long long)p->file_used * BLOCK);
    p->file_late = p->file_number;
    drop_file(p);
    return false;
}

static int take_memory(struct program *p, const struct program_message *m)
{
    struct program_message file;
    uint32_t number = 1;
    struct error e;

    if (p->file >= 0)
        return break_rules(p, "has requested two memories at the same time");
    while (number <= PROGRAM_MEMORIES && p->memory[number - 1] != NULL)
        number++;
    if (number > PROGRAM_MEMORIES) {
        (void)error_set(&e, ERROR_BUSY,
                        "a program shares at most %u memories with the daemon: free some, or "
                        "allocate larger ones",
                        PROGRAM_MEMORIES);
        return refuse_memory(p, 0, &e);
    }
    if (may_allocate(p, m->size, &e) != 0)
        return refuse_memory(p, number, &e);
    if ((p->file = memory_file(m->size, &e)) < 0) {
        program_uncount_memory(p, m->size);
        return refuse_memory(p, number, &e);
    }
    p->file_number = number;
    p->file_size = m->size;
    p->file_used = p->file_late = 0;
    p->file_used_at = uv_now(p->all->set.loop);
    programs_watch(p->all);
    file = message_of(PROGRAM_FILE, number);
    return answer(p, &file, &p->file, 1);
}

static int take_ready(struct program *p, const struct program_message *m)
{
    struct program_message taken = message_of(PROGRAM_MEMORY_TAKEN, m->number);
    struct program_memory *memory;
    struct error e;

    if (p->file < 0 && m->number != 0 && m->number == p->file_late) {
        p->file_late = 0;
        (void)error_set(
            &e, ERROR_TIMEOUT,
            "%llu bytes of shared memory were requested and for %u s not allocated: the "
            "daemon has taken them back; allocate them again",
            (unsigned long long)p->file_size, UNUSED_MS / 1000);
        return refuse_memory(p, m->number, &e);
    }
    if (p->file < 0 || m->number != p->file_number)
        return break_rules(p, "has allocated a memory that it has not requested");
    memory = memory_map(p->file, p->all->set.loop, &e);
    if (memory == NULL) {
        drop_file(p);
        return refuse_memory(p, m->number, &e);
    }
    (void)close(p->file);
    p->file = -1;
    p->memory[m->number - 1] = memory;
    return answer(p, &taken, NULL, 0);
}

/* Also what has been requested and cannot be allocated. */
static int take_free(struct program *p, const struct program_message *m)
{
    struct program_memory *memory;

    if (p->file >= 0 && m->number == p->file_number) {
        drop_file(p);
        return 0;
    }
    if (p->file < 0 && m->number != 0 && m->number == p->file_late) {
        p->file_late = 0;
        return 0;
    }
    memory = m->number > 0 && m->number <= PROGRAM_MEMORIES ? p->memory[m->number - 1] : NULL;
    if (memory == NULL)
        return break_rules(p, "has freed a memory that it does not have");
    p->memory[m->number - 1] = NULL;
    program_uncount_memory(p, memory->size);
    program_memory_unref(memory);
    return 0;
}

/* ---- Every message --------------------------------------------------------------------------- */

static int take_notice(struct program *p, const struct program_message *m)
{
    (void)m;
    p->wants_notices = true;
    program_notify(p);
    return 0;
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

#define IN(state) (1u << (state))

/* What a program may send, and when. */
static const struct rule {
    enum program_kind kind;
    unsigned states;
    int (*take)(struct program *p, const struct program_message *m); /* -1: it is gone */
} rules[] = {
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
        return break_rules(p, "does not speak the protocol of libtorus");
    if (m->version != PROGRAM_VERSION) {
        (void)error_set(&e, ERROR_PROTOCOL,
                        "the program's libtorus speaks version %u of the protocol of groups, and "
                        "the daemon version %u: install both from the same release of torusd",
                        m->version, PROGRAM_VERSION);
        program_refuse(p, &e);
        return -1;
    }
    if (memchr(m->text, 0, sizeof m->text) == NULL)
        return break_rules(p, "has sent a text without an end");
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].kind == m->kind && (rules[i].states & IN(p->state)) != 0)
            return rules[i].take(p, m);
    return break_rules(p, "has sent a message that does not belong here");
}

/* Without room for them, descriptors that come along are closed by the kernel. */
bool program_receive(struct program *p)
{
    for (int i = 0; i < MESSAGES_A_TURN; i++) {
        struct program_message message;
        struct iovec bytes = {&message, sizeof message};
        struct msghdr m = {.msg_iov = &bytes, .msg_iovlen = 1};
        ssize_t n = recvmsg(p->fd, &m, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return false;
        if (n <= 0) {
            program_die(p);
            return false;
        }
        /* Calls that were made before it come first. */
        if (n >= (ssize_t)(2 * sizeof(uint32_t)) && message.magic == PROGRAM_MAGIC &&
            message.version != PROGRAM_VERSION)
            n = sizeof message; /* of another size, perhaps */
        if (n != (ssize_t)sizeof message || (m.msg_flags & MSG_CTRUNC) != 0) {
            (void)break_rules(p, "has sent a message of the wrong size, or with descriptors");
            return false;
        }
        program_look(p);
        if (p->state == PROGRAM_GONE || take_message(p, &message) != 0)
            return false;
    }
    return true;
}
