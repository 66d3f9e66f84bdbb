#include "carrier_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/host/kernel_route.h"
#include "tests/support/cmocka.h"

struct ifaddrs entry[MOST];
struct sockaddr_storage addresses[MOST];
unsigned entries, asked;
bool no_netlink, real_netlink, fails;
int reports;
unsigned overruns;
unsigned number[MOST];
unsigned route;
unsigned route_bound;
uv_loop_t loop;
char told[200];
static bool closed;
unsigned reported;

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

struct sockaddr_storage address_of(const char *text, uint32_t scope)
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

void add(const char *name, unsigned flags, const char *address, uint32_t scope)
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

const struct carrier_user user = {on_changed, on_reported, on_closed, &loop};

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

struct carrier *begin(void)
{
    return begin_with(false);
}

struct carrier *begin_real(void)
{
    return begin_with(true);
}

void end(struct carrier *c)
{
    closed = false;
    carrier_close(c);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(closed);
    assert_int_equal(close(reports), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
}

void watch(struct carrier *c, unsigned port, const char *address, uint32_t scope)
{
    const struct sockaddr_storage local = address_of(address, scope);

    const struct carrier_ends ends = {(const struct sockaddr *)&local, NULL, "", false};

    carrier_watch(c, port, &ends);
}

void watch_link(struct carrier *c, const char *from, const char *to, uint32_t scope,
                const char *interface, bool bound)
{
    const struct sockaddr_storage local = address_of(from, scope), peer = address_of(to, scope);
    const struct carrier_ends ends = {(const struct sockaddr *)&local,
                                      (const struct sockaddr *)&peer, interface, bound};

    carrier_watch(c, 0, &ends);
}

void report(void)
{
    assert_int_equal(send(reports, "?", 1, 0), 1);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

void check(struct carrier *c, const char *expected)
{
    assert_false(carrier_report_changes(c));
    assert_string_equal(told, expected);
    told[0] = '\0';
    unsigned before = asked;
    assert_false(carrier_report_changes(c)); /* nothing has been reported */
    assert_int_equal(asked, before);
}
