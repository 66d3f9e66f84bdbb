#include "daemon/lib/discovery/discovery.h"

#include <sodium.h>
#include <stdlib.h>

#include "daemon/lib/discovery/internal.h"
#include "proto/unpack.h"

#define PACKET_UNPACKED_MOST (512u * 1024u)

struct discovery *discovery_new(const struct discovery_setup *setup)
{
    struct discovery *d = calloc(1, sizeof *d);

    if (d == NULL)
        return NULL;
    d->io = setup->io;
    d->identity = *setup->identity;
    database_init(&d->database, &d->identity.id);
    d->own.host = d->identity.id;
    d->own.sequence = setup->sequence;
    (void)strncpy(d->own.name, setup->name, sizeof d->own.name - 1);
    (void)strncpy(d->own.release, setup->release, sizeof d->own.release - 1);
    d->changed_at = discovery_now(d);
    return d;
}

void discovery_free(struct discovery *d)
{
    for (unsigned i = 0; i < d->interfaces; i++)
        neighbours_hello(d, &d->interface[i], true);
    setup_send_free(d);
    setup_take_free(d);
    database_free(&d->database);
    sodium_memzero(d, sizeof *d);
    free(d);
}

/* --- interfaces --- */

static struct own_interface *find_interface(struct discovery *d, unsigned index)
{
    for (unsigned i = 0; i < d->interfaces; i++)
        if (d->interface[i].state.index == index)
            return &d->interface[i];
    return NULL;
}

static bool same_state(const struct interface_state *a, const struct interface_state *b)
{
    return strcmp(a->name, b->name) == 0 && memcmp(a->mac, b->mac, MAC_SIZE) == 0 &&
           a->mtu == b->mtu && a->speed_mbit == b->speed_mbit && a->up == b->up &&
           a->carrier == b->carrier && a->ipv6 == b->ipv6 &&
           strcmp(a->member_of, b->member_of) == 0;
}

/* Removes interfaces that are not in the list. Returns whether there were any. */
static bool remove_others(struct discovery *d, const struct interface_state *list, unsigned count)
{
    bool removed = false;

    for (unsigned i = d->interfaces; i-- > 0;) {
        unsigned n = 0;
        while (n < count && list[n].index != d->interface[i].state.index)
            n++;
        if (n < count)
            continue;
        d->interfaces--;
        memmove(&d->interface[i], &d->interface[i + 1],
                (d->interfaces - i) * sizeof d->interface[0]);
        removed = true;
    }
    return removed;
}

void discovery_set_interfaces(struct discovery *d, const struct interface_state *list,
                              unsigned count)
{
    bool changed = remove_others(d, list, count);

    for (unsigned n = 0; n < count; n++) {
        struct own_interface *at = find_interface(d, list[n].index);
        if (at == NULL && d->interfaces < DISCOVERY_INTERFACES_MOST) {
            at = &d->interface[d->interfaces++];
            *at = (struct own_interface){.allowance = {SYNC_ALLOWANCE, discovery_now(d)}};
        }
        if (at == NULL || same_state(&at->state, &list[n]))
            continue;
        at->state = list[n];
        at->hello_due = 0;
        neighbours_expire(d, at);
        changed = true;
    }
    if (changed)
        neighbours_changed(d);
}

void discovery_set_node(struct discovery *d, const char *dims, bool have_rank, uint32_t rank)
{
    (void)strncpy(d->own.dims, dims, sizeof d->own.dims - 1);
    d->own.have_rank = have_rank;
    d->own.rank = rank;
    d->report_due = 0;
}

void discovery_set_secrets(struct discovery *d, const struct secrets *secrets)
{
    d->secrets = *secrets;
    database_trust_again(&d->database, secrets);
    d->report_due = 0;
}

void discovery_set_setups(struct discovery *d, bool accepts, const uint8_t nonce[NONCE_SIZE])
{
    d->own.accepts_setups = accepts && d->io.apply != NULL;
    memcpy(d->setups.nonce, nonce, NONCE_SIZE);
    d->report_due = 0;
}

/* --- the report of this host --- */

/* Writes the state of an interface, and the neighbours there. */
static void fill(struct reported_interface *to, const struct own_interface *from)
{
    (void)strcpy(to->name, from->state.name);
    memcpy(to->mac, from->state.mac, MAC_SIZE);
    to->mtu = from->state.mtu;
    to->speed_mbit = from->state.speed_mbit;
    to->up = from->state.up;
    to->carrier = from->state.carrier;
    to->ipv6 = from->state.ipv6;
    (void)strcpy(to->member_of, from->state.member_of);
    to->unanswered = from->unanswered;
    to->heards = from->neighbours;
    for (unsigned n = 0; n < from->neighbours; n++)
        to->heard[n] = from->neighbour[n].from;
}

/* Returns a new report, or NULL if there is no memory. */
static struct report *describe_self(const struct discovery *d)
{
    struct report *report = report_new(d->interfaces);

    if (report == NULL)
        return NULL;
    *report = d->own;
    report->interfaces = d->interfaces;
    for (unsigned i = 0; i < d->interfaces; i++)
        fill(&report->interface[i], &d->interface[i]);
    return report;
}

/* Returns the packed Signed with the report, or NULL if there is no memory. */
static uint8_t *sign_report(const struct discovery *d, const uint8_t *content, size_t content_size,
                            struct signed_parts *parts, Discovery__Signed *s, size_t *size)
{
    uint8_t *packed;

    signing_sign(&d->identity, &d->secrets, SIGNED_REPORT, content, content_size, parts, s);
    *size = discovery__signed__get_packed_size(s);
    packed = malloc(*size);
    if (packed != NULL)
        (void)discovery__signed__pack(s, packed);
    return packed;
}

/* Makes and stores a new report of this host's interfaces and neighbours, and sets the time of the next one.
 * Without memory the previous report stays for a moment. */
static void make_own_report(struct discovery *d)
{
    const uint64_t now = discovery_now(d);
    const enum trust trust = d->secrets.count > 0 ? TRUST_PROVED : TRUST_OPEN;
    Discovery__Signed s;
    struct signed_parts parts;
    struct report *report;
    uint8_t *content = NULL, *packed = NULL;
    size_t content_size, size;

    d->own.sequence++;
    d->report_due = now + DISCOVERY_REPORT_RENEWAL;
    report = describe_self(d);
    if (report != NULL)
        content = report_pack(report, &content_size);
    if (content != NULL && content_size <= REPORT_BYTES_MOST)
        packed = sign_report(d, content, content_size, &parts, &s, &size);
    if (packed != NULL)
        (void)database_store(&d->database, report, packed, size, &s, trust, now);
    else
        free(report);
    free(content);
}

/* --- setup messages --- */

/* Checks that a setup message for this host is from the host that it names, and gives it to its setup. */
static void take_setup_message(struct discovery *d, const struct own_interface *at,
                               const Discovery__Signed *s)
{
    Discovery__SetupMessage *setup_message =
        unpack_bounded(&discovery__setup_message__descriptor, s->content.data, s->content.len,
                       PACKET_UNPACKED_MOST);
    struct host_id from, to;

    if (setup_message == NULL)
        return;
    if (setup_message->setup.len == SETUP_ID_SIZE &&
        host_id_read(&from, setup_message->from.data, setup_message->from.len) &&
        host_id_read(&to, setup_message->to.data, setup_message->to.len) &&
        host_id_is(&to, &d->own.host) && database_find(&d->database, &from) != NULL &&
        signing_check(SIGNED_SETUP_MESSAGE, s, &from) && !setup_send_take(d, &from, setup_message))
        setup_take_message(
            d, &(struct received_setup_message){
                   &from, setup_message, at->state.index,
                   signing_trust(&d->secrets, SIGNED_SETUP_MESSAGE, s) == TRUST_PROVED});
    unpack_free(setup_message);
}

static void take_relay(struct discovery *d, struct own_interface *at, Discovery__Relay *relay)
{
    struct host_id to;

    /* A host may send from several addresses, so that the address says nothing. */
    if (relay->setup_message == NULL || at->neighbours == 0 ||
        !host_id_read(&to, relay->to.data, relay->to.len))
        return;
    if (host_id_is(&to, &d->own.host)) {
        if (sync_allowed(d, at))
            take_setup_message(d, at, relay->setup_message);
    } else if (relay->hops > 1 && sync_may_pass_on(d, at)) {
        relay->hops--;
        setup_message_pass_on(d, relay);
    }
}

/* --- datagrams --- */

void discovery_receive(struct discovery *d, unsigned interface,
                       const struct discovery_address *from, const uint8_t *bytes, size_t size)
{
    struct own_interface *at = find_interface(d, interface);
    Discovery__Packet *packet;

    if (at == NULL || size > DISCOVERY_PACKET_MOST)
        return;
    packet = unpack_bounded(&discovery__packet__descriptor, bytes, size, PACKET_UNPACKED_MOST);
    if (packet == NULL)
        return;
    if (packet->version != DISCOVERY_VERSION) {
        neighbours_note_stranger(d, at);
        unpack_free(packet);
        return;
    }
    switch (packet->kind_case) {
    case DISCOVERY__PACKET__KIND_HELLO:
        neighbours_take_hello(d, at, from, packet->hello);
        break;
    case DISCOVERY__PACKET__KIND_SUMMARY:
        sync_take_summary(d, at, from, packet->summary);
        break;
    case DISCOVERY__PACKET__KIND_WANT:
        sync_take_want(d, at, from, packet->want);
        break;
    case DISCOVERY__PACKET__KIND_REPORTS:
        sync_take_reports(d, at, packet->reports);
        break;
    case DISCOVERY__PACKET__KIND_RELAY:
        take_relay(d, at, packet->relay);
        break;
    default:
        break;
    }
    unpack_free(packet);
}

/* --- time --- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t discovery_deadline(const struct discovery *d)
{
    uint64_t next = earlier(d->report_due, d->expiry_due);

    for (unsigned i = 0; i < d->interfaces; i++) {
        const struct own_interface *at = &d->interface[i];
        next = earlier(next, at->hello_due);
        for (unsigned n = 0; n < at->neighbours; n++)
            next = earlier(next, at->neighbour[n].until);
    }
    return earlier(next, d->setups_due);
}

void discovery_tick(struct discovery *d)
{
    const uint64_t now = discovery_now(d);

    for (unsigned i = 0; i < d->interfaces; i++)
        neighbours_expire(d, &d->interface[i]);
    if (now >= d->report_due) {
        make_own_report(d);
        sync_send_own(d);
    }
    if (database_refresh(&d->database, now) || now >= d->expiry_due)
        d->expiry_due = database_expire(&d->database, now);
    (void)database_refresh(&d->database, now);
    for (unsigned i = 0; i < d->interfaces; i++)
        if (now >= d->interface[i].hello_due)
            neighbours_hello(d, &d->interface[i], false);
    d->setups_due = setup_send_tick(d);
    d->setups_due = earlier(d->setups_due, setup_take_tick(d));
}

void discovery_setup_ended(struct discovery *d, const struct setup_end *end)
{
    d->setups.busy = false;
    if (d->setups.given != NULL)
        setup_take_ended(d, end);
    d->setups_due = 0; /* the next one starts */
}

const struct database *discovery_database(struct discovery *d)
{
    (void)database_refresh(&d->database, discovery_now(d));
    return &d->database;
}

const struct host_id *discovery_id(const struct discovery *d)
{
    return &d->identity.id;
}

const struct secrets *discovery_secrets(const struct discovery *d)
{
    return &d->secrets;
}
