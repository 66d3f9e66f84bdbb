#include "daemon/torusd/program/messages/messages.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/torusd/program/connection/ending.h"
#include "daemon/torusd/program/messages/calls.h"
#include "daemon/torusd/program/messages/group_messages.h"
#include "daemon/torusd/program/messages/memory_messages.h"
#include "daemon/torusd/program/shared/page.h"

#define MESSAGES_A_TURN 16

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
    {PROGRAM_OPEN, IN(PROGRAM_STRANGER), program_take_open},
    {PROGRAM_SHRINK, IN(PROGRAM_STRANGER), program_take_open},
    {PROGRAM_MEMORY, IN(PROGRAM_MEMBER) | IN(PROGRAM_FAILED), program_take_memory},
    {PROGRAM_MEMORY_READY, IN(PROGRAM_MEMBER) | IN(PROGRAM_FAILED), program_take_ready},
    {PROGRAM_MEMORY_FREE, IN(PROGRAM_MEMBER) | IN(PROGRAM_FAILED), program_take_free},
    {PROGRAM_NOTICE, IN(PROGRAM_MEMBER) | IN(PROGRAM_FAILED), take_notice},
    {PROGRAM_LEAVE, IN(PROGRAM_OPENING) | IN(PROGRAM_MEMBER) | IN(PROGRAM_FAILED),
     program_take_leave},
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

/* The message has no room for descriptors, so the kernel closes those that come with it. */
bool program_receive(struct program *p)
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
