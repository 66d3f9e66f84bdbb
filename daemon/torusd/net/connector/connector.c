#include "daemon/torusd/net/connector/connector.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/lib/net/addresses/duplicate.h"
#include "daemon/lib/net/addresses/route.h"

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

/* Tries one address after the other, until a dial or listener has started. */
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
