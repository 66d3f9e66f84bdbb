/* Events of carriers, for interfaces that the test makes up. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/host/kernel_route.h"
#include "daemon/lib/net/carrier.h"
#include "proto/routes.h"
#include "tests/support/cmocka.h"

#define MOST 8u

#define PORTS 4u

enum {
    LOWER_UP = 0x10000,
    WORKS = IFF_UP | LOWER_UP,
    CUT = IFF_UP,
    LOOPBACK = IFF_UP | IFF_LOOPBACK
};

static struct ifaddrs entry[MOST];

static struct sockaddr_storage addresses[MOST];

unsigned entries, asked;
bool no_netlink, real_netlink, fails;

static int reports;

static unsigned overruns;

static unsigned number[MOST];

static unsigned route;

static unsigned route_bound;

static uv_loop_t loop;

static char told[200];

static bool closed;

static unsigned reported;

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length);
ssize_t __real_recv(int fd, void *buffer, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *buffer, size_t size, int flags);
int __wrap_getifaddrs(struct ifaddrs **all);
void __wrap_freeifaddrs(struct ifaddrs *all);
unsigned __wrap_if_nametoindex(const char *name);
char *__wrap_if_indextoname(unsigned index, char *name);
unsigned __wrap_route_interface(const struct sockaddr *peer, const struct sockaddr *local,
                                unsigned bound);

int __wrap_socket(int domain, int type, int protocol)
{
    int pair[2];

    if (domain != AF_NETLINK)
        return __real_socket(domain, type, protocol);
    if (no_netlink) {
        errno = EPERM;
        return -1;
    }
    if (real_netlink) {
        pair[0] = __real_socket(domain, type, protocol);
        reports = dup(pair[0]);
        return pair[0];
    }
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    reports = pair[1];
    return pair[0];
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length)
{
    assert_int_equal(address->sa_family, AF_NETLINK);
    return 0;
}

ssize_t __wrap_recv(int fd, void *buffer, size_t size, int flags)
{
    if (overruns > 0) {
        overruns--;
        errno = ENOBUFS;
        return -1;
    }
    return __real_recv(fd, buffer, size, flags);
}

int __wrap_getifaddrs(struct ifaddrs **all)
{
    asked++;
    if (fails) {
        errno = ENOMEM;
        return -1;
    }
    for (unsigned i = 0; i < entries; i++)
        entry[i].ifa_next = i + 1 < entries ? &entry[i + 1] : NULL;
    *all = entries > 0 ? entry : NULL;
    return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *all)
{
}

unsigned __wrap_if_nametoindex(const char *name)
{
    for (unsigned i = 0; i < entries; i++)
        if (strcmp(entry[i].ifa_name, name) == 0)
            return number[i];
    return 0;
}

char *__wrap_if_indextoname(unsigned index, char *name)
{
    for (unsigned i = 0; i < entries; i++)
        if (number[i] == index)
            return strcpy(name, entry[i].ifa_name);
    return NULL;
}

unsigned __wrap_route_interface(const struct sockaddr *peer, const struct sockaddr *local,
                                unsigned bound)
{
    route_bound = bound;
    return route;
}

/* The address in a text. */
static struct sockaddr_storage address_of(const char *text, uint32_t scope)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in *in = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;

    address.ss_family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
    assert_int_equal(
        inet_pton(address.ss_family, text,
                  address.ss_family == AF_INET6 ? (void *)&in6->sin6_addr : (void *)&in->sin_addr),
        1);
    if (address.ss_family == AF_INET6)
        in6->sin6_scope_id = scope;
    return address;
}

/* With `address` NULL it has none: the system then reports another kind of address, or none. */
static void add(const char *name, unsigned flags, const char *address, uint32_t scope)
{
    assert_true(entries < MOST);
    struct ifaddrs *e = &entry[entries];

    number[entries] = name[0] == 'l' ? 1 : 2 + (unsigned)(name[3] - '0');
    *e = (struct ifaddrs){.ifa_name = (char *)(uintptr_t)name, .ifa_flags = flags};
    if (address != NULL) {
        addresses[entries] = address_of(address, scope);
        e->ifa_addr = (struct sockaddr *)&addresses[entries];
    } else if (entries % 2 == 0) {
        addresses[entries] = (struct sockaddr_storage){.ss_family = AF_PACKET};
        e->ifa_addr = (struct sockaddr *)&addresses[entries];
    }
    entries++;
}

static void on_changed(void *context, unsigned port, const char *fault)
{
    size_t length = strlen(told);

    assert_ptr_equal(context, &loop);
    (void)snprintf(told + length, sizeof told - length, "%u: %s; ", port,
                   fault != NULL ? fault : "back");
}

static void on_reported(void *context)
{
    assert_ptr_equal(context, &loop);
    reported++;
}

static void on_closed(void *context)
{
    assert_ptr_equal(context, &loop);
    closed = true;
}

static const struct carrier_user user = {on_changed, on_reported, on_closed, &loop};

static struct carrier *begin_with(bool real)
{
    log_set_level(LOG_LEVEL_ERROR);
    entries = asked = overruns = route = reported = 0;
    fails = no_netlink = false;
    told[0] = '\0';
    real_netlink = real;
    assert_int_equal(uv_loop_init(&loop), 0);
    return carrier_open(&loop, &user, PORTS);
}

/* Starts to watch a system without interfaces. */
static struct carrier *begin(void)
{
    return begin_with(false);
}

/* Uses a socket of the real system, which has nothing to report. */
static struct carrier *begin_real(void)
{
    return begin_with(true);
}

/* Closes it. Fails the test if anything is left. */
static void end(struct carrier *c)
{
    closed = false;
    carrier_close(c);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(closed);
    assert_int_equal(close(reports), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
}

#define CARRIER_TEST(name) OBJECT_TEST(struct carrier *, c, begin(), end(c), name)

/* A port that listens on this address. */
static void watch(struct carrier *c, unsigned port, const char *address, uint32_t scope)
{
    const struct sockaddr_storage local = address_of(address, scope);

    const struct carrier_ends ends = {(const struct sockaddr *)&local, NULL, "", false};

    carrier_watch(c, port, &ends);
}

/* A link that is up, whose packets leave by `route`. */
static void watch_link(struct carrier *c, const char *from, const char *to, uint32_t scope,
                       const char *interface, bool bound)
{
    const struct sockaddr_storage local = address_of(from, scope), peer = address_of(to, scope);
    const struct carrier_ends ends = {(const struct sockaddr *)&local,
                                      (const struct sockaddr *)&peer, interface, bound};

    carrier_watch(c, 0, &ends);
}

/* The system reports a change. */
static void report(void)
{
    assert_int_equal(send(reports, "?", 1, 0), 1);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

/* Fails the test unless these events were recorded since the last check. */
static void check(struct carrier *c, const char *expected)
{
    assert_false(carrier_report_changes(c));
    assert_string_equal(told, expected);
    told[0] = '\0';
    unsigned before = asked;
    assert_false(carrier_report_changes(c)); /* nothing has been reported */
    assert_int_equal(asked, before);
}

CARRIER_TEST(a_carrier_goes_and_comes_back)
{
    watch(c, 0, "10.0.0.1", 0);
    watch(c, 1, "10.0.1.1", 0);
    add("lo", LOOPBACK | WORKS, "127.0.0.1", 0);
    add("eth0", WORKS, "10.0.0.1", 0);
    add("eth1", CUT, "10.0.1.1", 0);
    check(c, "1: no carrier on eth1; ");
    entry[1].ifa_flags = CUT;
    check(c, ""); /* the kernel has not reported it */
    report();
    check(c, "0: no carrier on eth0; ");
    report();
    check(c, "");
    entry[1].ifa_flags = WORKS;
    entry[2].ifa_flags = 0;
    report();
    check(c, "0: back; 1: no carrier on eth1, which is set down; ");
}

CARRIER_TEST(reports_may_be_lost)
{
    watch(c, 3, "10.0.0.1", 0);
    add("eth0", WORKS, "10.0.0.1", 0);
    check(c, "");
    entry[0].ifa_flags = CUT;
    overruns = 3;
    report();
    check(c, "3: no carrier on eth0; ");
    fails = true;
    entry[0].ifa_flags = WORKS;
    report();
    check(c, "");
    fails = false;
    report();
    check(c, "3: back; ");
}

/* Fills the socket with answers of the kernel until it has lost some. */
static void overflow(void)
{
    const struct nlmsghdr request = {.nlmsg_len = sizeof request,
                                     .nlmsg_type = NLMSG_NOOP,
                                     .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK};
    const int least = 1;

    assert_int_equal(setsockopt(reports, SOL_SOCKET, SO_RCVBUF, &least, sizeof least), 0);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(send(reports, &request, sizeof request, 0), sizeof request);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

TEST(a_socket_that_has_lost_reports_is_watched_again)
{
    struct carrier *c = begin_real();

    watch(c, 3, "10.0.0.1", 0);
    add("eth0", WORKS, "10.0.0.1", 0);
    check(c, "");
    for (unsigned i = 1; i <= 3; i++) {
        entry[0].ifa_flags = i % 2 == 1 ? CUT : WORKS;
        overflow();
        assert_int_equal(reported, i);
        check(c, i % 2 == 1 ? "3: no carrier on eth0; " : "3: back; ");
    }
    end(c);
}

/* The system reports a change of a route. */
static void report_route(unsigned char protocol)
{
    struct {
        struct nlmsghdr head;
        struct rtmsg route;
    } message = {.head = {.nlmsg_len = sizeof message, .nlmsg_type = RTM_NEWROUTE},
                 .route = {.rtm_protocol = protocol}};

    assert_int_equal(write(reports, &message, sizeof message), sizeof message);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

/* torus-routed changes its routes after a loss, and must not wait for torusd to look at all of them. */
CARRIER_TEST(routes_of_torus_routed_are_no_hurry)
{
    watch(c, 3, "10.0.0.1", 0);
    add("eth0", WORKS, "10.0.0.1", 0);
    check(c, "");
    entry[0].ifa_flags = CUT;
    report_route(ROUTE_PROTOCOL);
    check(c, "");
    (void)uv_run(&loop, UV_RUN_ONCE); /* until the timer */
    check(c, "3: no carrier on eth0; ");
    entry[0].ifa_flags = WORKS;
    report_route(RTPROT_STATIC);
    check(c, "3: back; ");
}

CARRIER_TEST(an_address_or_its_interface_goes)
{
    watch(c, 0, "10.0.0.1", 0);
    add("eth0", WORKS, "10.0.0.1", 0);
    add("eth0", WORKS, "10.9.9.9", 0);
    check(c, "");
    entries = 0;
    add("eth0", WORKS, "10.9.9.9", 0);
    report();
    check(c, "0: the address of this link has been removed from eth0; ");
    entry[0].ifa_flags = 0; /* IPv6 addresses go with it */
    report();
    check(c, "0: no carrier on eth0, which is set down; ");
    entries = 0;
    report();
    check(c, "0: interface eth0 has been removed; ");
    add("eth7", WORKS, "10.0.0.1", 0);
    report();
    check(c, "0: back; ");
}

CARRIER_TEST(names_of_no_interface_are_never_at_fault)
{
    watch(c, 0, "0.0.0.0", 0);
    watch(c, 1, "127.0.0.1", 0);
    watch(c, 2, "192.0.2.1", 0);
    add("lo", LOOPBACK, "127.0.0.1", 0);
    add("eth0", CUT, "10.0.0.1", 0);
    add("eth1", CUT, NULL, 0);
    add("eth2", CUT, NULL, 0);
    check(c, "");
    report();
    check(c, "");
}

CARRIER_TEST(addresses_of_two_families)
{
    watch(c, 0, "fe80::1", 2);
    watch(c, 1, "fe80::1", 3);
    watch(c, 2, "::ffff:10.0.0.1", 0);
    watch(c, 3, "fd00::7", 0);
    add("eth0", WORKS, "fe80::1", 2);
    add("eth1", CUT, "fe80::1", 3);
    add("eth2", CUT, "10.0.0.1", 0);
    add("eth3", CUT, "fd00::7", 0);
    check(c, "1: no carrier on eth1; 2: no carrier on eth2; 3: no carrier on eth3; ");
}

/* A link that was connected again from another address. */
CARRIER_TEST(another_address)
{
    watch(c, 0, "10.0.0.1", 0);
    add("eth0", CUT, "10.0.0.1", 0);
    add("eth1", WORKS, "10.0.1.1", 0);
    check(c, "0: no carrier on eth0; ");
    watch(c, 0, "10.0.0.1", 0);
    check(c, "");
    watch(c, 0, "10.0.1.1", 0);
    check(c, "0: back; ");
}

enum { ETH0 = 2, ETH1 = 3 };

/* One address on two cables. */
CARRIER_TEST(the_route_says_which_cable_it_is)
{
    watch(c, 1, "10.0.0.1", 0); /* listens, and has had no link: it may use either cable */
    watch_link(c, "10.0.0.1", "10.0.0.2", 0, "", false);
    assert_true(carrier_has_peer(c, 0));
    assert_false(carrier_has_peer(c, 1));
    add("eth0", WORKS, "10.0.0.1", 0);
    add("eth1", WORKS, "10.0.0.1", 0);
    route = ETH1;
    check(c, "");
    assert_string_equal(carrier_interface(c, 0), "eth1");
    assert_string_equal(carrier_interface(c, 1), "");
    entry[0].ifa_flags = CUT;
    report();
    assert_int_equal(reported, 1);
    check(c, "");
    entry[0].ifa_flags = WORKS;
    entry[1].ifa_flags = CUT;
    report();
    check(c, "0: no carrier on eth1; ");
}

CARRIER_TEST(routes_change)
{
    watch_link(c, "10.0.0.1", "10.0.0.2", 0, "", false);
    add("lo", LOOPBACK | WORKS, "10.0.0.1", 0);
    add("eth0", WORKS, "10.1.0.1", 0);
    add("eth1", WORKS, "10.1.1.1", 0);
    route = ETH0;
    check(c, "");
    route = ETH1; /* both work: it goes on over the other one */
    report();
    check(c, "");
    assert_string_equal(carrier_interface(c, 0), "eth1");
    entry[2].ifa_flags = CUT; /* now over a third host: that is not this link */
    route = ETH0;
    report();
    check(c, "0: no carrier on eth1; ");
    assert_string_equal(carrier_interface(c, 0), "eth1");
    watch_link(c, "10.0.0.1", "10.0.0.2", 0, "", false); /* one that has been proved */
    check(c, "0: back; ");
    assert_string_equal(carrier_interface(c, 0), "eth0");
    route = 0;
    report();
    check(c, "0: there is no route to 10.0.0.2:0 any more; ");
}

CARRIER_TEST(an_interface_is_made_again)
{
    watch_link(c, "fe80::1", "fe80::2", ETH0, "eth0", false);
    add("eth0", WORKS, "fe80::1", ETH0);
    route = ETH0;
    check(c, "");
    entries = 0;
    report();
    check(c, "0: interface eth0 has been removed; ");
    add("eth0", WORKS, "fe80::1", 70);
    number[0] = route = 70;
    report();
    check(c, "0: back; ");
    number[0] = route = 71; /* both within one turn of the loop */
    ((struct sockaddr_in6 *)&addresses[0])->sin6_scope_id = 71;
    report();
    assert_true(carrier_report_changes(c));
    check(c, "0: interface eth0 was removed and created again; 0: back; ");
}

CARRIER_TEST(an_interface_is_renamed)
{
    watch_link(c, "10.0.0.1", "10.0.0.2", 0, "", false);
    add("eth0", WORKS, "10.0.0.1", 0);
    route = ETH0;
    check(c, "");
    entry[0].ifa_name = (char[]){"lan0"};
    entry[0].ifa_flags = CUT;
    report();
    check(c, "0: no carrier on lan0; ");
}

CARRIER_TEST(a_link_is_bound_to_an_interface)
{
    watch_link(c, "10.0.0.1", "10.0.0.2", 0, "eth1", true);
    add("eth0", WORKS, "10.0.0.1", 0);
    add("eth1", CUT, "10.0.0.1", 0);
    route = ETH1;
    check(c, "0: no carrier on eth1; ");
    assert_int_equal(route_bound, ETH1);
}

TEST(without_netlink)
{
    struct carrier *c = begin();
    end(c);
    assert_int_equal(uv_loop_init(&loop), 0);
    no_netlink = true;
    assert_null(carrier_open(&loop, &user, PORTS));
    assert_int_equal(uv_loop_close(&loop), 0);
}
