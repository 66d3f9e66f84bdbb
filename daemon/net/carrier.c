#include "daemon/net/carrier.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/schedule/torus.h"

struct watched {
    struct sockaddr_storage local; /* ss_family 0: not known yet */
    char interface[IFNAMSIZ];      /* that has, or had, this address; "": none so far */
    char fault[CARRIER_TEXT_SIZE]; /* that has been told; "": none */
};

struct carrier {
    uv_poll_t poll;
    int fd;
    carrier_changed *changed;
    void (*closed)(void *context);
    void *context;
    bool stale; /* something may have changed */
    struct watched watched[TORUS_MAX_PORTS];
};

/* What is reported is not parsed: that there is a report suffices. */
static void on_report(uv_poll_t *poll, int status, int events)
{
    struct carrier *c = poll->data;
    char report[4096];

    (void)events;
    c->stale = true;
    if (status < 0) {
        log_warning("interfaces are no longer watched: %s", uv_strerror(status));
        (void)uv_poll_stop(poll);
        return;
    }
    /* ENOBUFS: some were lost, which comes to the same. */
    while (recv(c->fd, report, sizeof report, MSG_DONTWAIT) >= 0 || errno == EINTR ||
           errno == ENOBUFS)
        continue;
}

static int open_netlink(void)
{
    const struct sockaddr_nl address = {.nl_family = AF_NETLINK,
                                        .nl_groups =
                                            RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        int error = errno;
        (void)close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

struct carrier *carrier_open(uv_loop_t *loop, carrier_changed *changed,
                             void (*closed)(void *context), void *context)
{
    struct carrier *c = calloc(1, sizeof *c);
    int fd = open_netlink(), error = c == NULL ? ENOMEM : errno;

    if (c != NULL && fd >= 0)
        error = -uv_poll_init(loop, &c->poll, fd);
    if (c == NULL || fd < 0 || error != 0) {
        log_warning("interfaces cannot be watched, so a cable that is pulled is noticed by its "
                    "silence only: %s",
                    strerror(error));
        if (fd >= 0)
            (void)close(fd);
        free(c);
        return NULL;
    }
    c->fd = fd;
    c->changed = changed;
    c->closed = closed;
    c->context = context;
    c->poll.data = c;
    (void)uv_poll_start(&c->poll, UV_READABLE, on_report);
    return c;
}

static void on_closed(uv_handle_t *handle)
{
    struct carrier *c = handle->data;

    (void)close(c->fd);
    c->closed(c->context);
    free(c);
}

void carrier_close(struct carrier *c)
{
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

/* What dual-stack sockets say of an IPv4 address is that address. */
static void unmap(struct sockaddr_storage *address)
{
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    struct sockaddr_in in = {.sin_family = AF_INET};

    if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
        return;
    memcpy(&in.sin_addr, &in6->sin6_addr.s6_addr[12], sizeof in.sin_addr);
    memset(address, 0, sizeof *address);
    memcpy(address, &in, sizeof in);
}

void carrier_watch(struct carrier *c, unsigned port, const struct sockaddr *local)
{
    struct watched *w = &c->watched[port];
    struct sockaddr_storage address = {0};

    if (local->sa_family != AF_INET && local->sa_family != AF_INET6)
        return;
    memcpy(&address, local,
           local->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    unmap(&address);
    if (same_address((struct sockaddr *)&w->local, (struct sockaddr *)&address))
        return;
    w->local = address;
    w->interface[0] = '\0';
    c->stale = true;
}

bool carrier_watches(const struct carrier *c, unsigned port)
{
    return c->watched[port].local.ss_family != 0;
}

/* Why a link over this interface cannot work; "": it can. */
static void fault_of(const char *interface, unsigned flags, char *fault)
{
    *fault = '\0';
    if ((flags & IFF_LOOPBACK) != 0 || (flags & IFF_LOWER_UP) != 0)
        return;
    (void)snprintf(fault, CARRIER_TEXT_SIZE, "no carrier on %s%s", interface,
                   (flags & IFF_UP) != 0 ? "" : ", which is set down");
}

static void find_fault(struct watched *w, const struct ifaddrs *all, char *fault)
{
    const struct ifaddrs *had = NULL;

    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        if (same_address(i->ifa_addr, (struct sockaddr *)&w->local)) {
            (void)snprintf(w->interface, sizeof w->interface, "%s", i->ifa_name);
            fault_of(w->interface, i->ifa_flags, fault);
            return;
        }
        if (strcmp(i->ifa_name, w->interface) == 0)
            had = i;
    }
    *fault = '\0';
    if (had != NULL)
        fault_of(w->interface, had->ifa_flags, fault);
    if (w->interface[0] != '\0' && *fault == '\0')
        (void)snprintf(fault, CARRIER_TEXT_SIZE,
                       had != NULL ? "the address of this link has been removed from %s"
                                   : "interface %s has been removed",
                       w->interface);
}

bool carrier_look(struct carrier *c)
{
    struct ifaddrs *all;
    char fault[CARRIER_TEXT_SIZE];

    if (!c->stale)
        return false;
    c->stale = false;
    if (getifaddrs(&all) != 0) {
        log_warning("the state of interfaces cannot be read: %s", strerror(errno));
        return false; /* until the next report */
    }
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++) {
        struct watched *w = &c->watched[port];
        if (w->local.ss_family == 0)
            continue;
        find_fault(w, all, fault);
        if (strcmp(fault, w->fault) == 0)
            continue;
        (void)strcpy(w->fault, fault);
        c->changed(c->context, port, fault[0] != '\0' ? fault : NULL);
    }
    freeifaddrs(all);
    return c->stale; /* what was told may have led to another address */
}
