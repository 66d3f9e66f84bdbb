#include <string.h>

#include "daemon/lib/discovery/internal.h"
#include "proto/borrowed.h"
#include "proto/unpack.h"

#define HELLO_UNPACKED_MOST 4096u

/* Returns the interval of hellos, in nanoseconds. */
static uint64_t interval(const struct discovery *d)
{
    const uint64_t now = discovery_now(d);
    uint64_t last = d->changed_at > d->database.changed_at ? d->changed_at : d->database.changed_at;

    return now < last + DISCOVERY_SETTLED ? DISCOVERY_HELLO_FIRST
           : now < last + DISCOVERY_CALM  ? DISCOVERY_HELLO
                                          : DISCOVERY_HELLO_CALM;
}

void neighbours_changed(struct discovery *d)
{
    const uint64_t now = discovery_now(d);

    d->changed_at = now;
    if (d->report_due > now + DISCOVERY_REPORT_PAUSE)
        d->report_due = now + DISCOVERY_REPORT_PAUSE;
    for (unsigned i = 0; i < d->interfaces; i++)
        if (d->interface[i].hello_due > now + DISCOVERY_HELLO_FIRST)
            d->interface[i].hello_due = now + DISCOVERY_HELLO_FIRST;
}

void neighbours_hello(struct discovery *d, struct own_interface *at, bool leaving)
{
    Discovery__Hello hello = DISCOVERY__HELLO__INIT;
    Discovery__Packet packet = DISCOVERY__PACKET__INIT;
    Discovery__Signed s;
    struct signed_parts parts;
    const uint64_t every = interval(d);
    uint8_t content[256];
    uint8_t jitter;
    size_t size;

    d->io.random(d->io.context, &jitter, sizeof jitter);
    at->hello_due = discovery_now(d) + every - every / 8 + every / 4 * jitter / 256;
    if (!at->state.up || !at->state.carrier)
        return;
    hello.host = borrowed(d->own.host.bytes, HOST_ID_SIZE);
    hello.interface = at->state.name;
    hello.hold_ms = leaving ? 0 : (uint32_t)(DISCOVERY_HOLD_INTERVALS * every / MILLISECONDS);
    hello.digest = d->database.digest;
    size = discovery__hello__get_packed_size(&hello);
    if (size > sizeof content)
        return; /* names are shorter */
    (void)discovery__hello__pack(&hello, content);
    signing_sign(&d->identity, &d->secrets, SIGNED_HELLO, content, size, &parts, &s);
    packet.kind_case = DISCOVERY__PACKET__KIND_HELLO;
    packet.hello = &s;
    packet_send(d, at->state.index, NULL, &packet);
}

static void remove_neighbour(struct discovery *d, struct own_interface *at, unsigned n)
{
    at->neighbours--;
    memmove(&at->neighbour[n], &at->neighbour[n + 1],
            (at->neighbours - n) * sizeof at->neighbour[0]);
    neighbours_changed(d);
}

void neighbours_expire(struct discovery *d, struct own_interface *at)
{
    const uint64_t now = discovery_now(d);
    const bool usable = at->state.up && at->state.carrier;

    for (unsigned n = at->neighbours; n-- > 0;)
        if (!usable || at->neighbour[n].until <= now)
            remove_neighbour(d, at, n);
    const bool unanswered =
        usable && at->strange_until > now && now >= at->strange_since + DISCOVERY_UNANSWERED;
    if (unanswered != at->unanswered) {
        at->unanswered = unanswered;
        neighbours_changed(d);
    }
}

static struct neighbour *find(struct own_interface *at, const struct heard *from)
{
    for (unsigned n = 0; n < at->neighbours; n++)
        if (host_id_is(&at->neighbour[n].from.host, &from->host) &&
            strcmp(at->neighbour[n].from.interface, from->interface) == 0)
            return &at->neighbour[n];
    return NULL;
}

const struct neighbour *neighbours_find(const struct discovery *d, const char *by,
                                        const struct heard *from, unsigned *interface)
{
    for (unsigned i = 0; i < d->interfaces; i++) {
        const struct own_interface *at = &d->interface[i];
        if (strcmp(at->state.name, by) != 0)
            continue;
        *interface = at->state.index;
        return find((struct own_interface *)(uintptr_t)at, from);
    }
    return NULL;
}

/* Finds the entry of a neighbour, or adds it; NULL: there are too many on the interface. */
static struct neighbour *neighbour_for(struct discovery *d, struct own_interface *at,
                                       const struct heard *from)
{
    struct neighbour *n = find(at, from);

    if (n != NULL || at->neighbours == DISCOVERY_HEARD_MOST)
        return n;
    n = &at->neighbour[at->neighbours++];
    *n = (struct neighbour){.from = *from};
    neighbours_changed(d);
    return n;
}

void neighbours_note_stranger(const struct discovery *d, struct own_interface *at)
{
    const uint64_t now = discovery_now(d);

    if (at->strange_until <= now)
        at->strange_since = now;
    at->strange_until = now + DISCOVERY_HOLD_INTERVALS * DISCOVERY_HELLO_CALM;
}

/* Handles a hello whose content has been read. */
static void take(struct discovery *d, struct own_interface *at,
                 const struct discovery_address *address, const Discovery__Signed *s,
                 const Discovery__Hello *hello)
{
    struct heard from = {0};
    struct neighbour *n;

    if (!host_id_read(&from.host, hello->host.data, hello->host.len) ||
        !interface_name_is_valid(hello->interface) || !sync_allowed(d, at))
        return;
    (void)strcpy(from.interface, hello->interface);
    if (database_find(&d->database, &from.host) == NULL) {
        neighbours_note_stranger(d, at);
        sync_ask(d, at, address, &from.host);
        return;
    }
    if (!signing_check(SIGNED_HELLO, s, &from.host))
        return;
    if (hello->hold_ms == 0) {
        n = find(at, &from);
        if (n != NULL)
            remove_neighbour(d, at, (unsigned)(n - at->neighbour));
        return;
    }
    n = neighbour_for(d, at, &from);
    if (n == NULL)
        return;
    at->strange_until = 0;
    n->address = *address;
    n->until = discovery_now(d) + MILLISECONDS * (hello->hold_ms < DISCOVERY_HOLD_MOST_MS
                                                      ? hello->hold_ms
                                                      : DISCOVERY_HOLD_MOST_MS);
    n->digest = hello->digest;
    sync_compare(d, at, n);
}

void neighbours_take_hello(struct discovery *d, struct own_interface *at,
                           const struct discovery_address *from, const Discovery__Signed *s)
{
    Discovery__Hello *hello;

    if (s->key.len != PUBLIC_KEY_SIZE || !at->state.up)
        return;
    hello = unpack_bounded(&discovery__hello__descriptor, s->content.data, s->content.len,
                           HELLO_UNPACKED_MOST);
    if (hello == NULL)
        return;
    take(d, at, from, s, hello);
    unpack_free(hello);
}
