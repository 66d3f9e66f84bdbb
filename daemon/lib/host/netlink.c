#include "daemon/lib/host/netlink.h"

#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define MESSAGES_MOST 4096u

struct answer {
    char bytes[32768] __attribute__((aligned(NLMSG_ALIGNTO)));
};

/* Asks for a list. Returns a socket, or -1. */
static int ask(uint16_t type, unsigned char family)
{
    struct {
        struct nlmsghdr head;
        struct rtgenmsg message;
    } question = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtgenmsg)),
                           .nlmsg_type = type,
                           .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
                  .message = {.rtgen_family = family}};
    const struct timeval patience = {.tv_sec = 2};
    const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (send(fd, &question, question.head.nlmsg_len, 0) < 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

int host_netlink_list(uint16_t type, unsigned char family,
                      void (*each)(const struct nlmsghdr *message, void *context), void *context)
{
    const int fd = ask(type, family);
    struct answer answer;
    int result = fd < 0 ? -1 : 1;

    for (unsigned i = 0; i < MESSAGES_MOST && result > 0; i++) {
        const ssize_t length = recv(fd, &answer, sizeof answer, 0);
        unsigned left = length > 0 ? (unsigned)length : 0;
        if (length <= 0) {
            result = -1;
            break;
        }
        for (const struct nlmsghdr *m = (const void *)&answer; NLMSG_OK(m, left) && result > 0;
             m = NLMSG_NEXT(m, left)) {
            if (m->nlmsg_type == NLMSG_DONE)
                result = 0;
            else if (m->nlmsg_type == NLMSG_ERROR)
                result = -1;
            else
                each(m, context);
        }
    }
    if (fd >= 0)
        (void)close(fd);
    return result;
}
