/* The routes that `torusctl ip-routes` has set: they have a protocol number and an interface of their own. Any user may
 * ask the kernel for them. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "daemon/host/gather.h"

#define INTERFACE "torus0" /* client/cli/ip_routes/hosts_file.h */
#define PROTOCOL 84        /* client/cli/ip_routes/route_script.c */
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

/* Calls `each` with every message of the list. Returns 0, or -1 if the list is not complete. */
static int read_list(uint16_t type, unsigned char family,
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

static void count_route(const struct nlmsghdr *m, void *context)
{
    const struct rtmsg *route = NLMSG_DATA(m);

    if (m->nlmsg_type == RTM_NEWROUTE && m->nlmsg_len >= NLMSG_LENGTH(sizeof *route) &&
        route->rtm_protocol == PROTOCOL)
        (*(unsigned *)context)++;
}

struct own_address {
    unsigned index;
    char text[INET_ADDRSTRLEN];
};

static void find_address(const struct nlmsghdr *m, void *context)
{
    struct own_address *own = context;
    const struct ifaddrmsg *a = NLMSG_DATA(m);

    if (m->nlmsg_type != RTM_NEWADDR || m->nlmsg_len < NLMSG_LENGTH(sizeof *a) ||
        a->ifa_index != own->index)
        return;
    unsigned left = m->nlmsg_len - (unsigned)NLMSG_LENGTH(sizeof *a);
    for (const struct rtattr *r = IFA_RTA(a); RTA_OK(r, left); r = RTA_NEXT(r, left))
        if (r->rta_type == IFA_LOCAL && RTA_PAYLOAD(r) == sizeof(struct in_addr))
            (void)inet_ntop(AF_INET, RTA_DATA(r), own->text, sizeof own->text);
}

void gather_ip_routes(struct facts *f)
{
    struct own_address own = {.index = if_nametoindex(INTERFACE)};
    unsigned routes = 0;

    if (read_list(RTM_GETROUTE, AF_INET, count_route, &routes) == 0)
        facts_add(f, "ip_routes.count", "%u", routes);
    facts_add(f, "ip_routes.interface", "%s", own.index != 0 ? INTERFACE : "none");
    if (own.index != 0 && read_list(RTM_GETADDR, AF_INET, find_address, &own) == 0 &&
        own.text[0] != '\0')
        facts_add(f, "ip_routes.address", "%s", own.text);
}
