#include "daemon/lib/net/carrier.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/host/kernel_route.h"
#include "daemon/lib/net/address.h"
#include "daemon/lib/schedule/torus.h"
#include "proto/routes.h"

#ifndef IFF_LOWER_UP
#define IFF_LOWER_UP 0x10000u /* <linux/if.h>, which cannot be included beside <net/if.h> */
#endif

#define LATER_MS 20

struct watched {
    bool on;
    struct sockaddr_storage local, peer; /* ss_family 0: unknown */
    char named[IFNAMSIZ];                /* interface in the configuration; "": none */
    bool bound;                          /* sockets are bound to `named` */
    bool scoped;                         /* or a link-local address binds them in effect */
    char interface[IFNAMSIZ];            /* used now or last; "": none so far */
    unsigned index;                      /* index of `interface` */
    bool replaced;                       /* `fault` says so, until the next check */
    char fault[CARRIER_TEXT_SIZE];       /* the last fault told; "": none */
};

struct carrier {
    uv_poll_t poll;
    uv_timer_t later;
    unsigned handles; /* open */
    int fd;
    struct carrier_user user;
    bool stale; /* something may have changed */
    unsigned ports, moves;
    struct watched watched[];
};

/* Whether all messages of a report are about routes of torus-routed, which no link uses. */
static bool is_of_routed(const char *report, size_t length)
{
    const struct nlmsghdr *m = (const struct nlmsghdr *)report;
    unsigned rest = (unsigned)length;
    bool any = false;

    for (; NLMSG_OK(m, rest); m = NLMSG_NEXT(m, rest)) {
        const struct rtmsg *route = NLMSG_DATA(m);
        if ((m->nlmsg_type != RTM_NEWROUTE && m->nlmsg_type != RTM_DELROUTE) ||
            m->nlmsg_len < NLMSG_LENGTH(sizeof *route) || route->rtm_protocol != ROUTE_PROTOCOL)
            return false;
        any = true;
    }
    return any;
}

static void look(struct carrier *c)
{
    c->stale = true;
    c->user.reported(c->user.context);
}

static void on_later(uv_timer_t *timer)
{
    look(timer->data);
}

static void on_report(uv_poll_t *poll, int status, int events);

/* libuv stops to watch a socket that has lost reports, and calls that a bad file descriptor. Returns whether it watches
 * again. */
static bool watch_again(struct carrier *c, int status)
{
    if (errno == EAGAIN && uv_poll_start(&c->poll, UV_READABLE, on_report) == 0)
        return true;
    log_warning(
        "torusd no longer watches interfaces, and notices a pulled cable only by silence: %s",
        uv_strerror(status));
    (void)uv_poll_stop(&c->poll);
    return false;
}

/* A report about a route of torus-routed alone is not looked into at once: to look at all interfaces and routes takes
 * long, and torus-routed would wait for that after each of its own changes. torusd looks soon afterwards, because such
 * a change follows the loss of a link, which the system may report a second later at the other end. */
static void on_report(uv_poll_t *poll, int status, int events)
{
    struct carrier *c = poll->data;
    _Alignas(struct nlmsghdr) char report[4096];
    bool news = status < 0;
    ssize_t length;

    (void)events;
    /* ENOBUFS: reports were lost, which counts as a report. */
    while ((length = recv(c->fd, report, sizeof report, MSG_DONTWAIT)) >= 0 || errno == EINTR ||
           errno == ENOBUFS)
        news |= length < 0 || !is_of_routed(report, (size_t)length);
    if (status < 0 && !watch_again(c, status))
        c->stale = true;
    else if (news)
        look(c);
    else if (!uv_is_active((uv_handle_t *)&c->later))
        (void)uv_timer_start(&c->later, on_later, LATER_MS, 0);
}

static int open_netlink(void)
{
    const int rules[] = {RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE};
    const struct sockaddr_nl address = {.nl_family = AF_NETLINK,
                                        .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR |
                                                     RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
                                                     RTMGRP_IPV6_ROUTE};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        int error = errno;
        (void)close(fd);
        errno = error;
        return -1;
    }
    for (size_t i = 0; fd >= 0 && i < sizeof rules / sizeof rules[0]; i++)
        (void)setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &rules[i], sizeof rules[i]);
    return fd;
}

struct carrier *carrier_open(uv_loop_t *loop, const struct carrier_user *user, unsigned ports)
{
    struct carrier *c = calloc(1, sizeof *c + ports * sizeof *c->watched);
    int fd = open_netlink(), error = c == NULL ? ENOMEM : errno;

    if (c != NULL && fd >= 0)
        error = -uv_poll_init(loop, &c->poll, fd);
    if (c == NULL || fd < 0 || error != 0) {
        log_warning(
            "torusd cannot watch interfaces, and notices a pulled cable only by silence: %s",
            strerror(error));
        if (fd >= 0)
            (void)close(fd);
        free(c);
        return NULL;
    }
    c->fd = fd;
    c->user = *user;
    c->ports = ports;
    c->poll.data = c->later.data = c;
    c->handles = 2;
    (void)uv_timer_init(loop, &c->later);
    (void)uv_poll_start(&c->poll, UV_READABLE, on_report);
    return c;
}

static void on_closed(uv_handle_t *handle)
{
    struct carrier *c = handle->data;

    if (--c->handles > 0)
        return;
    (void)close(c->fd);
    c->user.closed(c->user.context);
    free(c);
}

void carrier_close(struct carrier *c)
{
    uv_close((uv_handle_t *)&c->later, on_closed);
    uv_close((uv_handle_t *)&c->poll, on_closed);
}

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a == NULL || a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    if (a->sa_family != AF_INET6)
        return false;
    const struct sockaddr_in6 *x = (const struct sockaddr_in6 *)a,
                              *y = (const struct sockaddr_in6 *)b;
    return memcmp(&x->sin6_addr, &y->sin6_addr, sizeof x->sin6_addr) == 0 &&
           (x->sin6_scope_id == y->sin6_scope_id || x->sin6_scope_id == 0 || y->sin6_scope_id == 0);
}

/* Replaces an IPv4 address that is mapped into IPv6 (from a dual-stack socket) by the IPv4 address. */
static void unmap_ipv4(struct sockaddr_storage *address)
{
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    struct sockaddr_in in = {.sin_family = AF_INET};

    if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
        return;
    memcpy(&in.sin_addr, &in6->sin6_addr.s6_addr[12], sizeof in.sin_addr);
    memset(address, 0, sizeof *address);
    memcpy(address, &in, sizeof in);
}

/* Copies an address; NULL: none. */
static void copy_address(struct sockaddr_storage *to, const struct sockaddr *from)
{
    *to = (struct sockaddr_storage){0};
    if (from == NULL || (from->sa_family != AF_INET && from->sa_family != AF_INET6))
        return;
    memcpy(to, from, address_length(from));
    unmap_ipv4(to);
}

void carrier_watch(struct carrier *c, unsigned port, const struct carrier_ends *ends)
{
    struct watched *w = &c->watched[port], now = {.on = true, .bound = ends->bound};

    copy_address(&now.local, ends->local);
    copy_address(&now.peer, ends->peer);
    (void)snprintf(now.named, sizeof now.named, "%s", ends->interface);
    now.scoped = address_is_link_local((struct sockaddr *)&now.local) ||
                 address_is_link_local((struct sockaddr *)&now.peer);
    (void)strcpy(now.fault, w->fault); /* has been told */
    *w = now;
    c->stale = true;
}

bool carrier_has_peer(const struct carrier *c, unsigned port)
{
    return c->watched[port].peer.ss_family != 0;
}

const char *carrier_interface(const struct carrier *c, unsigned port)
{
    return c->watched[port].interface;
}

unsigned carrier_moves(const struct carrier *c)
{
    return c->moves;
}

/* --- the state of interfaces --- */

/* Whether there is an interface of this name, with its flags. */
static bool find_flags(const struct ifaddrs *all, const char *name, unsigned *flags)
{
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
        if (strcmp(i->ifa_name, name) == 0) {
            *flags = i->ifa_flags;
            return true;
        }
    return false;
}

/* Writes why a link over this interface cannot work; "" if it can. */
static void interface_fault(const struct ifaddrs *all, const char *interface, char *fault)
{
    unsigned flags = 0;

    *fault = '\0';
    if (!find_flags(all, interface, &flags))
        (void)snprintf(fault, CARRIER_TEXT_SIZE, "interface %s has been removed", interface);
    else if ((flags & IFF_LOOPBACK) == 0 && (flags & IFF_LOWER_UP) == 0)
        (void)snprintf(fault, CARRIER_TEXT_SIZE, "no carrier on %s%s", interface,
                       (flags & IFF_UP) != 0 ? "" : ", which is set down");
}

/* Returns how many interfaces have the address, and sets *name to one of them: to `preferred`, if it has the
 * address. */
static unsigned with_address(const struct ifaddrs *all, const struct sockaddr *address,
                             const char *preferred, char *name)
{
    unsigned count = 0;

    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        if (!same_address(i->ifa_addr, address))
            continue;
        if (count++ == 0 || strcmp(i->ifa_name, preferred) == 0)
            (void)snprintf(name, IFNAMSIZ, "%s", i->ifa_name);
    }
    return count;
}

static bool is_wildcard(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6
               ? IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr)
               : ((const struct sockaddr_in *)address)->sin_addr.s_addr == INADDR_ANY;
}

/* --- the interface of a link --- */

static bool has_local(const struct watched *w)
{
    return w->local.ss_family != 0 && !is_wildcard((const struct sockaddr *)&w->local);
}

/* Sets the zone of a link-local address. A zone is the interface's index, which changes when the interface is
 * created again. */
static void set_zone(struct sockaddr_storage *address, unsigned index)
{
    if (index != 0 && address_is_link_local((struct sockaddr *)address))
        ((struct sockaddr_in6 *)address)->sin6_scope_id = index;
}

/* Writes the interface that a link would use now; "" if there is none or it is not known. */
static void find_interface(struct watched *w, const struct ifaddrs *all, char *name)
{
    const unsigned named = w->named[0] != '\0' ? interface_index(w->named) : 0;
    const struct sockaddr *local = (const struct sockaddr *)&w->local;
    unsigned index;

    name[0] = '\0';
    if (w->named[0] != '\0' && named == 0)
        return;
    set_zone(&w->local, named);
    set_zone(&w->peer, named);
    if (w->peer.ss_family != 0) {
        index = route_interface((const struct sockaddr *)&w->peer, has_local(w) ? local : NULL,
                                w->bound ? named : 0);
        if (index != 0 && if_indextoname(index, name) == NULL)
            name[0] = '\0';
    } else if (named != 0) {
        if (if_indextoname(named, name) == NULL)
            name[0] = '\0';
    } else if (has_local(w) && with_address(all, local, w->interface, name) > 1 &&
               strcmp(name, w->interface) != 0) {
        name[0] = '\0'; /* other interfaces have the address, too */
    }
}

/* Explains why a link no longer uses the interface that it used before. */
static void explain_fault(const struct watched *w, const struct ifaddrs *all, char *fault)
{
    char other[IFNAMSIZ], address[ADDRESS_TEXT_SIZE];

    interface_fault(all, w->interface, fault);
    if (*fault != '\0')
        return;
    if (has_local(w) &&
        with_address(all, (const struct sockaddr *)&w->local, w->interface, other) == 0) {
        (void)snprintf(fault, CARRIER_TEXT_SIZE,
                       "the address of this link has been removed from %s", w->interface);
    } else if (w->peer.ss_family != 0) {
        address_format((const struct sockaddr *)&w->peer, address, sizeof address);
        (void)snprintf(fault, CARRIER_TEXT_SIZE, "there is no route to %s any more", address);
    }
}

/* Records that a link uses this interface now, perhaps a different one than before. */
static void use_interface(struct watched *w, const struct ifaddrs *all, const char *name,
                          char *fault)
{
    const unsigned index = if_nametoindex(name), before = w->index;
    const bool created_again = before != 0 && strcmp(name, w->interface) == 0 && index != before;

    w->replaced = false;

    (void)strcpy(w->interface, name);
    w->index = index;
    interface_fault(all, name, fault);
    if (!created_again || *fault != '\0' || w->fault[0] != '\0' || (!w->scoped && !w->bound))
        return;
    w->replaced = true;
    (void)snprintf(fault, CARRIER_TEXT_SIZE, "interface %s was removed and created again", name);
}

static void find_fault(struct watched *w, const struct ifaddrs *all, char *fault)
{
    const struct sockaddr *local = (const struct sockaddr *)&w->local;
    char now[IFNAMSIZ], renamed[IFNAMSIZ], holder[IFNAMSIZ];

    *fault = '\0';
    find_interface(w, all, now);
    if (w->interface[0] == '\0') {
        if (now[0] != '\0')
            use_interface(w, all, now, fault);
        return;
    }
    /* The interface may have a new name. */
    if (w->index != 0 && if_indextoname(w->index, renamed) != NULL)
        (void)strcpy(w->interface, renamed);
    if (now[0] != '\0' && has_local(w) && with_address(all, local, w->interface, holder) == 0)
        now[0] = '\0'; /* IPv6 keeps routes from addresses that no longer exist */
    if (now[0] == '\0') {
        explain_fault(w, all, fault);
        return;
    }
    if (strcmp(now, w->interface) != 0 && w->peer.ss_family != 0)
        interface_fault(all, w->interface, fault);
    if (*fault == '\0')
        use_interface(w, all, now, fault);
}

bool carrier_report_changes(struct carrier *c)
{
    struct ifaddrs *all;
    char fault[CARRIER_TEXT_SIZE], before[IFNAMSIZ];

    if (!c->stale)
        return false;
    c->stale = false;
    if (getifaddrs(&all) != 0) {
        log_warning("torusd cannot read the state of interfaces: %s", strerror(errno));
        return false; /* until the next report */
    }
    for (unsigned port = 0; port < c->ports; port++) {
        struct watched *w = &c->watched[port];
        if (!w->on)
            continue;
        (void)strcpy(before, w->interface);
        find_fault(w, all, fault);
        c->moves += before[0] != '\0' && strcmp(before, w->interface) != 0;
        c->stale |= w->replaced;
        if (strcmp(fault, w->fault) == 0)
            continue;
        (void)strcpy(w->fault, fault);
        c->user.changed(c->user.context, port, fault[0] != '\0' ? fault : NULL);
    }
    freeifaddrs(all);
    return c->stale; /* the user's functions may have changed an address */
}
