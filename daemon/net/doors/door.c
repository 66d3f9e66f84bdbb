#include "daemon/net/doors/door.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/net/addresses/duplicate.h"
#include "daemon/net/addresses/route.h"

#define DOOR_TEXT_SIZE (ENDPOINT_TEXT_SIZE + ADDRESS_TEXT_SIZE + 4u)

/* --- why it waits --- */

static void set_reason(struct door *door, int error, bool here, const char *reason)
{
    door->error = error;
    door->here = here;
    door->changed = true;
    (void)snprintf(door->reason, sizeof door->reason, "%s", reason);
}

/* Adds the reason of one more address, which may differ from the reasons of the addresses before. */
static void add_reason(struct door *door, int error, bool here, const char *address,
                       const char *what)
{
    char reason[DOOR_REASON_SIZE];

    (void)snprintf(reason, sizeof reason, "%.80s%s%s%s: %.200s", door->reason,
                   door->reason[0] != '\0' ? "; " : "", door->listens ? "cannot listen on " : "",
                   address, what);
    set_reason(door, error, here || (door->reason[0] != '\0' && door->here), reason);
}

/* Whether an error comes from the state of this host, and not from the neighbour. */
static bool is_here(int error)
{
    return error == ENODEV || error == EADDRNOTAVAIL || error == ENETUNREACH ||
           error == EHOSTUNREACH || error == ENETDOWN || error == EINVAL || error == EAFNOSUPPORT ||
           error == EACCES || error == EADDRINUSE;
}

static const char *text_of(const struct door *door, const struct sockaddr *address, char *text,
                           size_t size)
{
    char plain[ADDRESS_TEXT_SIZE], named[ENDPOINT_TEXT_SIZE];

    if (door->endpoint->literal.ss_family != 0) {
        endpoint_format(door->endpoint, text, size);
        return text;
    }
    endpoint_format(door->endpoint, named, sizeof named);
    address_format(address, plain, sizeof plain);
    (void)snprintf(text, size, "%s (%.79s)", named, plain);
    return text;
}

/* Explains why the door cannot listen or dial, if the kernel does not use an address because it is a
 * duplicate. */
static bool explain_duplicate(const struct door *door, char *what, size_t size)
{
    const char *side = door->listens ? "-" : "+";
    char address[INET6_ADDRSTRLEN];

    if (door->index == 0 || !duplicate_address(door->index, address, sizeof address))
        return false;
    (void)snprintf(
        what, size,
        "another machine at %s has %s, too, as duplicate address detection says: are two "
        "%s ports cabled to each other?",
        door->endpoint->interface, address, side);
    return true;
}

static void failed(struct door *door, const struct sockaddr *address, int error)
{
    char text[DOOR_TEXT_SIZE], what[200];

    if (!is_here(error) || !explain_duplicate(door, what, sizeof what))
        (void)socket_failure(error, door->endpoint->interface, what, sizeof what);
    add_reason(door, error, is_here(error), text_of(door, address, text, sizeof text), what);
}

/* --- dialling --- */

static void try_addresses(struct door *door);

static void on_part_closed(void *context)
{
    struct door *door = context;

    door->user->closed(door->user->context);
}

static void on_dialled(void *context, int fd, int error, const char *farther)
{
    struct door *door = context;
    const struct sockaddr *address = (const struct sockaddr *)&door->found[door->next - 1];
    char text[DOOR_TEXT_SIZE], what[200];

    door->dial = NULL;
    if (fd >= 0) {
        door->reason[0] = '\0';
        door->user->connected(door, fd);
        return;
    }
    if (farther != NULL) {
        (void)snprintf(what, sizeof what,
                       "the route there leads over another host (%s), which is farther than "
                       "hop_limit %u allows",
                       farther[0] != '\0' ? farther : "unknown", door->options->hop_limit);
        add_reason(door, error, true, text_of(door, address, text, sizeof text), what);
    } else {
        failed(door, address, error);
    }
    try_addresses(door);
}

/* Starts a dial. Returns 0 if it is under way. */
static int dial(struct door *door, const struct sockaddr *address)
{
    const struct dial_user user = {on_dialled, on_part_closed, door, door};
    const bool bound = door->endpoint->bound;

    door->dial = dial_start(door->loop, address, door->options,
                            bound ? door->endpoint->interface : "", door->reserve, &user);
    if (door->dial == NULL)
        return errno;
    door->user->opened(door->user->context);
    door->dial_route = route_interface(address, NULL, bound ? door->index : 0);
    door->user->placed(door, NULL, address);
    return 0;
}

/* --- listening --- */

static int on_socket(void *context, int fd, sa_family_t family)
{
    const struct door *door = context;

    return socket_set_up(door->options, fd, family,
                         door->endpoint->bound ? door->endpoint->interface : "");
}

static void on_accepted(void *context, int fd)
{
    struct door *door = context;

    if (door->shut)
        (void)close(fd);
    else
        door->user->connected(door, fd);
}

static void on_listener_closed(void *context)
{
    struct door *door = context;

    door->closing = false;
    if (!door->shut)
        door_open(door);
    door->user->closed(door->user->context);
}

static int listen_on(struct door *door, const struct sockaddr *address)
{
    door->listener = (struct listener){.reserve = door->reserve,
                                       .prepare = on_socket,
                                       .accepted = on_accepted,
                                       .closed = on_listener_closed,
                                       .context = door};
    if (listener_open(&door->listener, door->loop, address, address_length(address)) != 0)
        return errno;
    door->listening = true;
    set_reason(door, 0, false, "");
    door->user->opened(door->user->context);
    door->user->placed(door, address, NULL);
    return 0;
}

/* --- both --- */

/* Tries one address after the other, until a dial or listener has started. */
static void try_addresses(struct door *door)
{
    while (door->next < door->count) {
        struct sockaddr_storage *at = &door->found[door->next++];
        endpoint_complete(door->endpoint, door->index, at);
        const struct sockaddr *address = (const struct sockaddr *)at;
        int error = door->listens ? listen_on(door, address) : dial(door, address);
        if (error == 0)
            return;
        failed(door, address, error);
    }
}

static void on_looked_up(void *context, const struct sockaddr_storage *found, unsigned count,
                         const char *reason)
{
    struct door *door = context;
    char text[ENDPOINT_TEXT_SIZE];

    door->lookup = NULL;
    memcpy(door->found, found, count * sizeof *found);
    door->count = count;
    door->next = 0;
    if (count == 0) {
        endpoint_format(door->endpoint, text, sizeof text);
        add_reason(door, EADDRNOTAVAIL, true, text, reason);
    }
    try_addresses(door);
}

static void look_up(struct door *door)
{
    const struct lookup_user user = {on_looked_up, on_part_closed, door, door};

    if (door->endpoint->literal.ss_family != 0) {
        on_looked_up(door, &door->endpoint->literal, 1, "");
        return;
    }
    door->lookup = lookup_start(door->loop, door->endpoint->host, &user);
    if (door->lookup == NULL)
        on_looked_up(door, door->found, 0, strerror(errno));
    else
        door->user->opened(door->user->context);
}

static void give_up(struct door *door)
{
    if (door->lookup != NULL)
        lookup_cancel(door->lookup);
    if (door->dial != NULL)
        dial_cancel(door->dial);
    door->lookup = NULL;
    door->dial = NULL;
}

void door_open(struct door *door)
{
    const char *interface = door->endpoint->interface;
    char text[ENDPOINT_TEXT_SIZE], what[80];

    if (door->shut || door->listening || door->closing)
        return;
    give_up(door);
    door->reason[0] = '\0';
    door->index = interface[0] != '\0' ? interface_index(interface) : 0;
    if (interface[0] == '\0' || door->index != 0) {
        look_up(door);
        return;
    }
    endpoint_format(door->endpoint, text, sizeof text);
    add_reason(door, ENODEV, true, text, socket_failure(ENODEV, interface, what, sizeof what));
}

static void close_listener(struct door *door)
{
    door->listening = false;
    door->closing = true;
    listener_close(&door->listener);
}

bool door_look(struct door *door)
{
    const bool named = door->endpoint->interface[0] != '\0';
    const unsigned index = named ? interface_index(door->endpoint->interface) : 0;

    if (door->shut)
        return false;
    if (door->listens) {
        if (door->listening && index != door->index)
            close_listener(door); /* opened again after it has been closed */
        else if (door->lookup == NULL)
            door_open(door);
        return false;
    }
    if (door->dial != NULL) {
        const struct sockaddr *address = (const struct sockaddr *)&door->found[door->next - 1];
        return index != door->index ||
               route_interface(address, NULL, door->endpoint->bound ? index : 0) !=
                   door->dial_route;
    }
    return door->lookup == NULL && door->reason[0] != '\0' && door->here;
}

const char *door_missing(const struct door *door)
{
    if (door->reason[0] == '\0' || door->dial != NULL || door->lookup != NULL)
        return NULL;
    return door->listens || door->error == ENODEV || door->error == EADDRNOTAVAIL ? door->reason
                                                                                  : NULL;
}

void door_shut(struct door *door)
{
    if (door->shut || door->loop == NULL)
        return;
    door->shut = true;
    give_up(door);
    if (door->listening)
        close_listener(door);
}
