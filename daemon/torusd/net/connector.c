#include "daemon/torusd/net/connector.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/lib/base/detached_thread.h"
#include "daemon/lib/host/kernel_route.h"
#include "daemon/lib/net/address.h"
#include "daemon/lib/net/sockets.h"

/* Finds addresses that the kernel does not use, because another machine on the cable has the same address. */

/* "fe80000000000000000000000000000a 03 40 20 08 eth0": address, index, length, scope, flags, interface */
static bool read_line(const char *line, unsigned index, struct in6_addr *address)
{
    unsigned of, length, scope, flags;
    int at = 0;

    for (unsigned i = 0; i < sizeof address->s6_addr; i++)
        if (sscanf(line + 2 * (size_t)i, "%2hhx%n", &address->s6_addr[i], &at) != 1 || at != 2)
            return false;
    return sscanf(line + 32, " %x %x %x %x", &of, &length, &scope, &flags) == 4 && of == index &&
           (flags & IFA_F_DADFAILED) != 0;
}

/* Whether duplicate address detection (IPv6) has failed for an address of this interface. If so, writes
 * that address to `text`: "fe80::b". */
static bool duplicate_address(unsigned index, char *text, size_t size)
{
    FILE *file = fopen("/proc/self/net/if_inet6", "re");
    struct in6_addr address;
    bool found = false;
    char line[160];

    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
        found = read_line(line, index, &address) &&
                inet_ntop(AF_INET6, &address, text, (socklen_t)size) != NULL;
    if (file != NULL)
        (void)fclose(file);
    return found;
}

/* Looks up the addresses of a host by its name without blocking. Each lookup has its own thread, because a
 * name server that does not answer can block the thread for half a minute. The loop, the threads that read
 * and write files, and the end of the program must not wait for that. */

struct lookup;

struct lookup_user {
    /* Called once, at the end, with the addresses (without ports) in the order in which they should be tried;
     * or with count 0 and the reason. All arguments are borrowed. */
    void (*done)(void *context, const struct sockaddr_storage *found, unsigned count,
                 const char *reason);
    /* The last handle of the lookup has been closed, after done() or lookup_cancel(). */
    void (*closed)(void *context);
    void *context, *closed_context;
};

/* Happy path: lookup_start() -> thread: getaddrinfo(), writes to `fd` -> on_answer() -> done().
 *
 * The loop and the thread both own the question, and the last owner frees it: the thread of a cancelled
 * lookup continues until the resolver gives up, and its answer is dropped. */

struct question {
    atomic_uint owners;
    int fd; /* readable when it has been answered */
    char reason[160];
    unsigned count;
    struct sockaddr_storage found[LOOKUP_MOST];
    char host[];
};

struct lookup {
    uv_poll_t poll;
    struct question *question;
    struct lookup_user user;
};

static void disown_question(struct question *q)
{
    if (atomic_fetch_sub(&q->owners, 1) > 1)
        return;
    (void)close(q->fd);
    free(q);
}

static void *ask_resolver(void *argument)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const uint64_t one = 1;
    struct question *q = argument;
    struct addrinfo *found = NULL;
    int result = getaddrinfo(q->host, NULL, &hints, &found), error = errno;

    for (const struct addrinfo *i = found; i != NULL && q->count < LOOKUP_MOST; i = i->ai_next)
        if (i->ai_family == AF_INET || i->ai_family == AF_INET6)
            memcpy(&q->found[q->count++], i->ai_addr, i->ai_addrlen);
    if (result == 0)
        freeaddrinfo(found);
    if (q->count == 0)
        (void)snprintf(q->reason, sizeof q->reason, "the name cannot be looked up: %s",
                       result == EAI_SYSTEM ? strerror(error)
                       : result != 0        ? gai_strerror(result)
                                            : "it has no address");
    if (write(q->fd, &one, sizeof one) < 0)
        abort(); /* cannot happen: a new eventfd has room for it */
    disown_question(q);
    return NULL;
}

static void on_closed(uv_handle_t *handle)
{
    struct lookup *lookup = handle->data;
    const struct lookup_user user = lookup->user;

    disown_question(lookup->question);
    free(lookup);
    user.closed(user.closed_context);
}

/* Cancels the lookup: done() will not be called, but closed() will. */
static void lookup_cancel(struct lookup *lookup)
{
    uv_close((uv_handle_t *)&lookup->poll, on_closed);
}

static void on_answer(uv_poll_t *poll, int status, int events)
{
    struct lookup *lookup = poll->data;
    const struct question *q = lookup->question;

    (void)status, (void)events;
    lookup_cancel(lookup); /* frees it in the next iteration of the loop */
    lookup->user.done(lookup->user.context, q->found, q->count, q->reason);
}

/* Starts a lookup; *user is copied. Returns NULL with errno if there is no memory, thread or descriptor;
 * then no function is called. */
static struct lookup *lookup_start(uv_loop_t *loop, const char *host,
                                   const struct lookup_user *user)
{
    const size_t length = strlen(host);
    struct lookup *lookup = calloc(1, sizeof *lookup);
    struct question *q = calloc(1, sizeof *q + length + 1);
    int error = ENOMEM;

    if (lookup == NULL || q == NULL)
        goto fail;
    memcpy(q->host, host, length + 1);
    q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (q->fd < 0) {
        error = errno;
        goto fail;
    }
    error = detached_thread_start(ask_resolver, (atomic_init(&q->owners, 2), q));
    if (error != 0) {
        (void)close(q->fd);
        goto fail;
    }
    lookup->question = q;
    lookup->user = *user;
    lookup->poll.data = lookup;
    if (uv_poll_init(loop, &lookup->poll, q->fd) != 0) {
        disown_question(q);
        q = NULL;
        error = ENOMEM;
        goto fail;
    }
    (void)uv_poll_start(&lookup->poll, UV_READABLE, on_answer);
    return lookup;
fail:
    free(lookup);
    free(q);
    errno = error;
    return NULL;
}

/* One attempt to connect a socket. (libuv's function gives no chance to set up the socket before, and does
 * not tell why the attempt failed.) */

struct dial;

struct dial_user {
    /* The attempt is over. `fd` is a connected, non-blocking socket, which the callee owns; or -1, with an
     * errno in `error`. If packets reached their hop limit at another host (sockets.h), `farther` is its
     * address, otherwise NULL. */
    void (*done)(void *context, int fd, int error, const char *farther);
    /* The handle of the attempt has been closed, after done() or dial_cancel(). */
    void (*closed)(void *context);
    void *context, *closed_context;
};

#define SYN_RETRIES 2 /* about seven seconds */
/* from linux/in6.h, which cannot be included beside netinet/in.h */
#define IPV6_PREFER_SRC_PUBLIC 0x2

struct dial {
    uv_poll_t poll;
    int fd; /* -1: handed over */
    sa_family_t family;
    struct dial_user user;
};

static void on_dial_closed(uv_handle_t *handle)
{
    struct dial *dial = handle->data;
    const struct dial_user user = dial->user;

    free(dial);
    user.closed(user.closed_context);
}

/* Cancels the attempt: done() will not be called, but closed() will. */
static void dial_cancel(struct dial *dial)
{
    (void)uv_poll_stop(&dial->poll);
    if (dial->fd >= 0)
        (void)close(dial->fd);
    uv_close((uv_handle_t *)&dial->poll, on_dial_closed);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct dial *dial = poll->data;
    char host[ADDRESS_TEXT_SIZE] = "";
    int fd = dial->fd, error = 0;
    socklen_t size = sizeof error;
    bool farther = false;

    (void)status, (void)events;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (error == 0) {
        hops_drop_errors(fd, dial->family);
        (void)uv_poll_stop(poll);
        dial->fd = -1;
    } else {
        farther = hops_exceeded(fd, host, sizeof host);
    }
    dial_cancel(dial); /* frees it in the next iteration of the loop */
    dial->user.done(dial->user.context, error == 0 ? fd : -1, error, farther ? host : NULL);
}

/* Prefers a permanent source address: temporary (privacy) addresses are removed after some days, and the link
 * would go down with its address. */
static void prefer_lasting_source(int fd, sa_family_t family)
{
    const int lasting = IPV6_PREFER_SRC_PUBLIC;

    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_ADDR_PREFERENCES, &lasting, sizeof lasting);
}

static int open_socket(const struct sockaddr *address, const struct socket_options *options,
                       const char *interface, struct reserve *reserve)
{
    const int retries = SYN_RETRIES;
    int fd;

    do
        fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    while (fd < 0 && reserve_release_one(reserve, errno));
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &retries, sizeof retries);
    hops_keep_errors(fd, address->sa_family);
    prefer_lasting_source(fd, address->sa_family);
    if (socket_set_up(options, fd, address->sa_family, interface) == 0 &&
        (connect(fd, address, address_length(address)) == 0 || errno == EINPROGRESS))
        return fd;
    int error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

/* Starts to connect; the socket is bound to `interface`, unless that is "". Returns NULL with errno if that
 * fails at once; then no function is called. */
static struct dial *dial_start(uv_loop_t *loop, const struct sockaddr *address,
                               const struct socket_options *options, const char *interface,
                               struct reserve *reserve, const struct dial_user *user)
{
    struct dial *dial = calloc(1, sizeof *dial);
    int error, fd;

    if (dial == NULL)
        return NULL;
    fd = open_socket(address, options, interface, reserve);
    error = fd < 0 ? errno : -uv_poll_init(loop, &dial->poll, fd);
    if (error != 0) {
        if (fd >= 0)
            (void)close(fd);
        free(dial);
        errno = error;
        return NULL;
    }
    dial->fd = fd;
    dial->family = address->sa_family;
    dial->user = *user;
    dial->poll.data = dial;
    (void)uv_poll_start(&dial->poll, UV_WRITABLE, on_ready);
    return dial;
}

#define CONNECTOR_TEXT_SIZE (ENDPOINT_TEXT_SIZE + ADDRESS_TEXT_SIZE + 4u)

/* --- why the connector waits --- */

static void set_reason(struct connector *connector, int error, bool is_local, const char *reason)
{
    connector->error = error;
    connector->is_local = is_local;
    connector->changed = true;
    (void)snprintf(connector->reason, sizeof connector->reason, "%s", reason);
}

/* Adds the reason of one more address, which may differ from the reasons of the addresses before. */
static void add_reason(struct connector *connector, int error, bool is_local, const char *address,
                       const char *what)
{
    char reason[CONNECTOR_REASON_SIZE];

    (void)snprintf(reason, sizeof reason, "%.80s%s%s%s: %.200s", connector->reason,
                   connector->reason[0] != '\0' ? "; " : "",
                   connector->listens ? "cannot listen on " : "", address, what);
    set_reason(connector, error, is_local || (connector->reason[0] != '\0' && connector->is_local),
               reason);
}

/* Whether an error comes from the state of this host, and not from the neighbour. */
static bool is_local_error(int error)
{
    return error == ENODEV || error == EADDRNOTAVAIL || error == ENETUNREACH ||
           error == EHOSTUNREACH || error == ENETDOWN || error == EINVAL || error == EAFNOSUPPORT ||
           error == EACCES || error == EADDRINUSE;
}

static const char *address_text(const struct connector *connector, const struct sockaddr *address,
                                char *text, size_t size)
{
    char plain[ADDRESS_TEXT_SIZE], named[ENDPOINT_TEXT_SIZE];

    if (connector->endpoint->literal.ss_family != 0) {
        endpoint_format(connector->endpoint, text, size);
        return text;
    }
    endpoint_format(connector->endpoint, named, sizeof named);
    address_format(address, plain, sizeof plain);
    (void)snprintf(text, size, "%s (%.79s)", named, plain);
    return text;
}

/* Explains why the connector cannot listen or dial, if the kernel does not use an address because it is a
 * duplicate. */
static bool explain_duplicate(const struct connector *connector, char *what, size_t size)
{
    const char *does = connector->listens ? "listen" : "dial";
    char address[INET6_ADDRSTRLEN];

    if (connector->index == 0 || !duplicate_address(connector->index, address, sizeof address))
        return false;
    (void)snprintf(what, size,
                   "duplicate address detection has found another machine with address %s at %s: "
                   "are two ports that %s cabled to each other?",
                   address, connector->endpoint->interface, does);
    return true;
}

static void address_failed(struct connector *connector, const struct sockaddr *address, int error)
{
    char text[CONNECTOR_TEXT_SIZE], what[200];

    if (!is_local_error(error) || !explain_duplicate(connector, what, sizeof what))
        (void)socket_failure(error, connector->endpoint->interface, what, sizeof what);
    add_reason(connector, error, is_local_error(error),
               address_text(connector, address, text, sizeof text), what);
}

/* --- dialling --- */

static void try_addresses(struct connector *connector);

static void on_part_closed(void *context)
{
    struct connector *connector = context;

    connector->user->closed(connector->user->context);
}

static void on_dialled(void *context, int fd, int error, const char *farther)
{
    struct connector *connector = context;
    const struct sockaddr *address =
        (const struct sockaddr *)&connector->found[connector->next - 1];
    char text[CONNECTOR_TEXT_SIZE], what[200];

    connector->dial = NULL;
    if (fd >= 0) {
        connector->reason[0] = '\0';
        connector->user->connected(connector, fd);
        return;
    }
    if (farther != NULL) {
        (void)snprintf(what, sizeof what,
                       "the route there leads over another host (%s), which is farther than "
                       "hop_limit %u allows",
                       farther[0] != '\0' ? farther : "unknown", connector->options->hop_limit);
        add_reason(connector, error, true, address_text(connector, address, text, sizeof text),
                   what);
    } else {
        address_failed(connector, address, error);
    }
    try_addresses(connector);
}

/* Starts a dial. Returns 0 if it is under way. */
static int start_dial(struct connector *connector, const struct sockaddr *address)
{
    const struct dial_user user = {on_dialled, on_part_closed, connector, connector};
    const bool bound = connector->endpoint->bound;

    connector->dial =
        dial_start(connector->loop, address, connector->options,
                   bound ? connector->endpoint->interface : "", connector->reserve, &user);
    if (connector->dial == NULL)
        return errno;
    connector->user->opened(connector->user->context);
    connector->dial_route = route_interface(address, NULL, bound ? connector->index : 0);
    connector->user->address_known(connector, NULL, address);
    return 0;
}

/* --- listening --- */

static int on_socket(void *context, int fd, sa_family_t family)
{
    const struct connector *connector = context;

    return socket_set_up(connector->options, fd, family,
                         connector->endpoint->bound ? connector->endpoint->interface : "");
}

static void on_accepted(void *context, int fd)
{
    struct connector *connector = context;

    if (connector->closed_for_good)
        (void)close(fd);
    else
        connector->user->connected(connector, fd);
}

static void on_listener_closed(void *context)
{
    struct connector *connector = context;

    connector->closing = false;
    if (!connector->closed_for_good)
        connector_open(connector);
    connector->user->closed(connector->user->context);
}

static int listen_on(struct connector *connector, const struct sockaddr *address)
{
    connector->listener = (struct listener){.reserve = connector->reserve,
                                            .prepare = on_socket,
                                            .accepted = on_accepted,
                                            .closed = on_listener_closed,
                                            .context = connector};
    if (listener_open(&connector->listener, connector->loop, address, address_length(address)) != 0)
        return errno;
    connector->listening = true;
    set_reason(connector, 0, false, "");
    connector->user->opened(connector->user->context);
    connector->user->address_known(connector, address, NULL);
    return 0;
}

/* --- both --- */

/* Tries one address after another, until a dial or listener has started. */
static void try_addresses(struct connector *connector)
{
    while (connector->next < connector->count) {
        struct sockaddr_storage *at = &connector->found[connector->next++];
        endpoint_complete(connector->endpoint, connector->index, at);
        const struct sockaddr *address = (const struct sockaddr *)at;
        int error =
            connector->listens ? listen_on(connector, address) : start_dial(connector, address);
        if (error == 0)
            return;
        address_failed(connector, address, error);
    }
}

static void on_looked_up(void *context, const struct sockaddr_storage *found, unsigned count,
                         const char *reason)
{
    struct connector *connector = context;
    char text[ENDPOINT_TEXT_SIZE];

    connector->lookup = NULL;
    memcpy(connector->found, found, count * sizeof *found);
    connector->count = count;
    connector->next = 0;
    if (count == 0) {
        endpoint_format(connector->endpoint, text, sizeof text);
        add_reason(connector, EADDRNOTAVAIL, true, text, reason);
    }
    try_addresses(connector);
}

static void look_up(struct connector *connector)
{
    const struct lookup_user user = {on_looked_up, on_part_closed, connector, connector};

    if (connector->endpoint->literal.ss_family != 0) {
        on_looked_up(connector, &connector->endpoint->literal, 1, "");
        return;
    }
    connector->lookup = lookup_start(connector->loop, connector->endpoint->host, &user);
    if (connector->lookup == NULL)
        on_looked_up(connector, connector->found, 0, strerror(errno));
    else
        connector->user->opened(connector->user->context);
}

static void give_up(struct connector *connector)
{
    if (connector->lookup != NULL)
        lookup_cancel(connector->lookup);
    if (connector->dial != NULL)
        dial_cancel(connector->dial);
    connector->lookup = NULL;
    connector->dial = NULL;
}

void connector_open(struct connector *connector)
{
    const char *interface = connector->endpoint->interface;
    char text[ENDPOINT_TEXT_SIZE], what[80];

    if (connector->closed_for_good || connector->listening || connector->closing)
        return;
    give_up(connector);
    connector->reason[0] = '\0';
    connector->index = interface[0] != '\0' ? interface_index(interface) : 0;
    if (interface[0] == '\0' || connector->index != 0) {
        look_up(connector);
        return;
    }
    endpoint_format(connector->endpoint, text, sizeof text);
    add_reason(connector, ENODEV, true, text, socket_failure(ENODEV, interface, what, sizeof what));
}

static void close_listener(struct connector *connector)
{
    connector->listening = false;
    connector->closing = true;
    listener_close(&connector->listener);
}

bool connector_recheck(struct connector *connector)
{
    const bool named = connector->endpoint->interface[0] != '\0';
    const unsigned index = named ? interface_index(connector->endpoint->interface) : 0;

    if (connector->closed_for_good)
        return false;
    if (connector->listens) {
        if (connector->listening && index != connector->index)
            close_listener(connector); /* opened again after it has been closed */
        else if (connector->lookup == NULL)
            connector_open(connector);
        return false;
    }
    if (connector->dial != NULL) {
        const struct sockaddr *address =
            (const struct sockaddr *)&connector->found[connector->next - 1];
        return index != connector->index ||
               route_interface(address, NULL, connector->endpoint->bound ? index : 0) !=
                   connector->dial_route;
    }
    return connector->lookup == NULL && connector->reason[0] != '\0' && connector->is_local;
}

const char *connector_missing(const struct connector *connector)
{
    if (connector->reason[0] == '\0' || connector->dial != NULL || connector->lookup != NULL)
        return NULL;
    return connector->listens || connector->error == ENODEV || connector->error == EADDRNOTAVAIL
               ? connector->reason
               : NULL;
}

void connector_close(struct connector *connector)
{
    if (connector->closed_for_good || connector->loop == NULL)
        return;
    connector->closed_for_good = true;
    give_up(connector);
    if (connector->listening)
        close_listener(connector);
}
