#include "daemon/torusd/program/connection/send.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

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
