/* What is told of carriers, for interfaces of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/net/addresses/route.h"
#include "daemon/net/carrier/carrier.h"

#define MOST 8u

enum {
    LOWER_UP = 0x10000,
    WORKS = IFF_UP | LOWER_UP,
    CUT = IFF_UP,
    LOOPBACK = IFF_UP | IFF_LOOPBACK
};

/* ---- The system ------------------------------------------------------------------------------ */

static struct ifaddrs entry[MOST];
static struct sockaddr_storage addresses[MOST];
static unsigned entries, asked;
static bool no_netlink, fails;
static int reports; /* the system's end of the socket */
static unsigned overruns;
static unsigned number[MOST]; /* of each entry's interface */
static unsigned route;        /* to any peer: the number of an interface, 0: there is none */
static unsigned route_bound;  /* what was last asked for */

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
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    reports = pair[1];
    return pair[0];
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length)
{
    (void)fd, (void)length;
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
    (void)all;
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
    (void)peer, (void)local;
    route_bound = bound;
    return route;
}

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

/* `address` NULL: it has none, which the system says with another kind of address, or with none. */
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

/* ---- What is told ---------------------------------------------------------------------------- */

static uv_loop_t loop;
static char told[200]; /* since the last check: "1: no carrier on eth1; 2: back; " */
static bool closed;

static void on_changed(void *context, unsigned port, const char *fault)
{
    size_t length = strlen(told);

    assert_ptr_equal(context, &loop);
    (void)snprintf(told + length, sizeof told - length, "%u: %s; ", port,
                   fault != NULL ? fault : "back");
}

static unsigned reported;

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

static struct carrier *begin(void)
{
    log_set_level(LOG_LEVEL_ERROR);
    entries = asked = overruns = route = reported = 0;
    fails = no_netlink = false;
    told[0] = '\0';
    assert_int_equal(uv_loop_init(&loop), 0);
    return carrier_open(&loop, &user);
}

static void end(struct carrier *c)
{
    closed = false;
    carrier_close(c);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(closed);
    assert_int_equal(close(reports), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
}

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

static void report(void)
{
    assert_int_equal(send(reports, "?", 1, 0), 1);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

static void check(struct carrier *c, const char *expected)
{
    assert_false(carrier_look(c));
    assert_string_equal(told, expected);
    told[0] = '\0';
    unsigned before = asked;
    assert_false(carrier_look(c)); /* nothing has been reported */
    assert_int_equal(asked, before);
}

static void a_carrier_goes_and_comes_back(void **state)
{
    struct carrier *c = begin();
    (void)state;
    watch(c, 0, "10.0.0.1", 0);
    watch(c, 1, "10.0.1.1", 0);
    add("lo", LOOPBACK | WORKS, "127.0.0.1", 0);
    add("eth0", WORKS, "10.0.0.1", 0);
    add("eth1", CUT, "10.0.1.1", 0);
    check(c, "1: no carrier on eth1; ");
    entry[1].ifa_flags = CUT;
    check(c, ""); /* nobody has said so */
    report();
    check(c, "0: no carrier on eth0; ");
    report();
    check(c, "");
    entry[1].ifa_flags = WORKS;
    entry[2].ifa_flags = 0;
    report();
    check(c, "0: back; 1: no carrier on eth1, which is set down; ");
    end(c);
}

static void reports_may_be_lost(void **state)
{
    struct carrier *c = begin();
    (void)state;
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
    end(c);
}

static void an_address_or_its_interface_goes(void **state)
{
    struct carrier *c = begin();
    (void)state;
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
    end(c);
}

static void what_is_no_interface_is_never_at_fault(void **state)
{
    struct carrier *c = begin();
    (void)state;
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
    end(c);
}

static void addresses_of_two_families(void **state)
{
    struct carrier *c = begin();
    (void)state;
    watch(c, 0, "fe80::1", 2);
    watch(c, 1, "fe80::1", 3);
    watch(c, 2, "::ffff:10.0.0.1", 0);
    watch(c, 3, "fd00::7", 0);
    add("eth0", WORKS, "fe80::1", 2);
    add("eth1", CUT, "fe80::1", 3);
    add("eth2", CUT, "10.0.0.1", 0);
    add("eth3", CUT, "fd00::7", 0);
    check(c, "1: no carrier on eth1; 2: no carrier on eth2; 3: no carrier on eth3; ");
    end(c);
}

/* A link that has been made anew from another address. */
static void another_address(void **state)
{
    struct carrier *c = begin();
    (void)state;
    watch(c, 0, "10.0.0.1", 0);
    add("eth0", CUT, "10.0.0.1", 0);
    add("eth1", WORKS, "10.0.1.1", 0);
    check(c, "0: no carrier on eth0; ");
    watch(c, 0, "10.0.0.1", 0);
    check(c, "");
    watch(c, 0, "10.0.1.1", 0);
    check(c, "0: back; ");
    end(c);
}

enum { ETH0 = 2, ETH1 = 3 };

/* One address on two cables. */
static void the_route_says_which_cable_it_is(void **state)
{
    struct carrier *c = begin();
    (void)state;
    watch(c, 1, "10.0.0.1", 0); /* listens, and has had no link: it may be either */
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
    end(c);
}

static void routes_change(void **state)
{
    struct carrier *c = begin();
    (void)state;
    watch_link(c, "10.0.0.1", "10.0.0.2", 0, "", false);
    add("lo", LOOPBACK | WORKS, "10.0.0.1", 0);
    add("eth0", WORKS, "10.1.0.1", 0);
    add("eth1", WORKS, "10.1.1.1", 0);
    route = ETH0;
    check(c, "");
    route = ETH1; /* both work: it goes on by the other one */
    report();
    check(c, "");
    assert_string_equal(carrier_interface(c, 0), "eth1");
    entry[2].ifa_flags = CUT; /* and now over a third host: that is not this link */
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
    end(c);
}

static void an_interface_is_made_again(void **state)
{
    struct carrier *c = begin();
    (void)state;
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
    assert_true(carrier_look(c));
    check(c, "0: interface eth0 has been made again; 0: back; ");
    end(c);
}

static void an_interface_is_renamed(void **state)
{
    struct carrier *c = begin();
    (void)state;
    watch_link(c, "10.0.0.1", "10.0.0.2", 0, "", false);
    add("eth0", WORKS, "10.0.0.1", 0);
    route = ETH0;
    check(c, "");
    entry[0].ifa_name = (char[]){"lan0"};
    entry[0].ifa_flags = CUT;
    report();
    check(c, "0: no carrier on lan0; ");
    end(c);
}

static void a_link_is_bound_to_an_interface(void **state)
{
    struct carrier *c = begin();
    (void)state;
    watch_link(c, "10.0.0.1", "10.0.0.2", 0, "eth1", true);
    add("eth0", WORKS, "10.0.0.1", 0);
    add("eth1", CUT, "10.0.0.1", 0);
    route = ETH1;
    check(c, "0: no carrier on eth1; ");
    assert_int_equal(route_bound, ETH1);
    end(c);
}

static void without_netlink(void **state)
{
    (void)state;
    struct carrier *c = begin();
    end(c);
    assert_int_equal(uv_loop_init(&loop), 0);
    no_netlink = true;
    assert_null(carrier_open(&loop, &user));
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_carrier_goes_and_comes_back),
        cmocka_unit_test(reports_may_be_lost),
        cmocka_unit_test(an_address_or_its_interface_goes),
        cmocka_unit_test(what_is_no_interface_is_never_at_fault),
        cmocka_unit_test(addresses_of_two_families),
        cmocka_unit_test(another_address),
        cmocka_unit_test(the_route_says_which_cable_it_is),
        cmocka_unit_test(routes_change),
        cmocka_unit_test(an_interface_is_made_again),
        cmocka_unit_test(an_interface_is_renamed),
        cmocka_unit_test(a_link_is_bound_to_an_interface),
        cmocka_unit_test(without_netlink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
