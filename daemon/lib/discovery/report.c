#include "daemon/lib/discovery/report.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/borrowed.h"
#include "proto/discovery.pb-c.h"
#include "proto/text.h"
#include "proto/unpack.h"

struct host_id host_id_of(const uint8_t public_key[PUBLIC_KEY_SIZE])
{
    static const uint8_t label[] = "torusd discovery host id";
    struct host_id id;

    (void)crypto_generichash(id.bytes, HOST_ID_SIZE, public_key, PUBLIC_KEY_SIZE, label,
                             sizeof label - 1);
    return id;
}

char *host_id_text(const struct host_id *id, char text[HOST_ID_TEXT_SIZE])
{
    return sodium_bin2hex(text, HOST_ID_TEXT_SIZE, id->bytes, HOST_ID_SIZE);
}

bool host_id_parse(struct host_id *id, const char *text)
{
    size_t size;

    return strlen(text) == HOST_ID_TEXT_SIZE - 1 &&
           sodium_hex2bin(id->bytes, HOST_ID_SIZE, text, strlen(text), NULL, &size, NULL) == 0 &&
           size == HOST_ID_SIZE;
}

#define UNPACKED_MOST (1024u * 1024u)
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

struct report *report_new(unsigned interfaces)
{
    struct report *report =
        calloc(1, sizeof *report + (size_t)interfaces * sizeof report->interface[0]);

    if (report != NULL)
        report->interfaces = interfaces;
    return report;
}

bool interface_name_is_valid(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length < IFNAMSIZ && strspn(name, LETTERS "_.:@-") == length &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

bool host_name_is_valid(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length < REPORT_NAME_SIZE && strspn(name, LETTERS "._-") == length &&
           name[0] != '.' && name[0] != '-';
}

const struct reported_interface *report_interface(const struct report *report, const char *name)
{
    for (unsigned i = 0; i < report->interfaces; i++)
        if (strcmp(report->interface[i].name, name) == 0)
            return &report->interface[i];
    return NULL;
}

bool report_hears(const struct reported_interface *at, const struct host_id *host,
                  const char *interface)
{
    for (unsigned i = 0; i < at->heards; i++)
        if (host_id_is(&at->heard[i].host, host) && strcmp(at->heard[i].interface, interface) == 0)
            return true;
    return false;
}

/* --- packing --- */

/* The messages of one interface, with room for the neighbours. */
struct packed_interface {
    Discovery__Interface message;
    Discovery__Heard heard[DISCOVERY_HEARD_MOST];
    Discovery__Heard *list[DISCOVERY_HEARD_MOST];
};

static void fill_interface(struct packed_interface *p, const struct reported_interface *i)
{
    discovery__interface__init(&p->message);
    p->message.name = borrowed_text(i->name);
    p->message.mac = borrowed(i->mac, MAC_SIZE);
    p->message.mtu = i->mtu;
    p->message.speed_mbit = i->speed_mbit;
    p->message.up = i->up;
    p->message.carrier = i->carrier;
    p->message.ipv6 = i->ipv6;
    p->message.member_of = borrowed_text(i->member_of);
    p->message.unanswered = i->unanswered;
    p->message.n_heard = i->heards;
    p->message.heard = p->list;
    for (unsigned n = 0; n < i->heards; n++) {
        p->list[n] = &p->heard[n];
        discovery__heard__init(&p->heard[n]);
        p->heard[n].host = borrowed(i->heard[n].host.bytes, HOST_ID_SIZE);
        p->heard[n].interface = borrowed_text(i->heard[n].interface);
    }
}

uint8_t *report_pack(const struct report *report, size_t *size)
{
    Discovery__Report message = DISCOVERY__REPORT__INIT;
    struct packed_interface *packed = calloc(report->interfaces + 1, sizeof *packed);
    Discovery__Interface *list[DISCOVERY_INTERFACES_MOST];
    uint8_t *bytes = NULL;

    if (packed == NULL)
        return NULL;
    for (unsigned i = 0; i < report->interfaces; i++) {
        fill_interface(&packed[i], &report->interface[i]);
        list[i] = &packed[i].message;
    }
    message.host = borrowed(report->host.bytes, HOST_ID_SIZE);
    message.name = borrowed_text(report->name);
    message.sequence = report->sequence;
    message.torusd = borrowed_text(report->release);
    message.dims = borrowed_text(report->dims);
    message.rank = report->have_rank ? report->rank + 1 : 0;
    message.accepts_setups = report->accepts_setups;
    message.n_interfaces = report->interfaces;
    message.interfaces = list;
    *size = discovery__report__get_packed_size(&message);
    bytes = malloc(*size);
    if (bytes != NULL)
        (void)discovery__report__pack(&message, bytes);
    free(packed);
    return bytes;
}

/* --- reading --- */

static int wrong(struct error *e, const char *what)
{
    return error_set(e, ERROR_PROTOCOL, "a report has an invalid %s", what);
}

static int read_interface(struct reported_interface *to, const Discovery__Interface *from,
                          struct error *e)
{
    if (!interface_name_is_valid(from->name))
        return wrong(e, "name of an interface");
    if (from->mac.len != MAC_SIZE)
        return wrong(e, "MAC address");
    if (from->member_of[0] != '\0' && !interface_name_is_valid(from->member_of))
        return wrong(e, "name of a bridge");
    if (from->n_heard > DISCOVERY_HEARD_MOST)
        return wrong(e, "number of neighbours");
    (void)strcpy(to->name, from->name);
    memcpy(to->mac, from->mac.data, MAC_SIZE);
    to->mtu = from->mtu;
    to->speed_mbit = from->speed_mbit;
    to->up = from->up;
    to->carrier = from->carrier;
    to->ipv6 = from->ipv6;
    to->unanswered = from->unanswered;
    (void)strcpy(to->member_of, from->member_of);
    to->heards = (unsigned)from->n_heard;
    for (unsigned n = 0; n < to->heards; n++) {
        if (!host_id_read(&to->heard[n].host, from->heard[n]->host.data,
                          from->heard[n]->host.len) ||
            !interface_name_is_valid(from->heard[n]->interface))
            return wrong(e, "neighbour");
        (void)strcpy(to->heard[n].interface, from->heard[n]->interface);
    }
    return 0;
}

/* Checks what does not depend on the interfaces. */
static int check(const Discovery__Report *message, struct error *e)
{
    if (message->host.len != HOST_ID_SIZE)
        return wrong(e, "host id");
    if (!host_name_is_valid(message->name))
        return wrong(e, "host name");
    if (message->sequence > REPORT_SEQUENCE_MOST)
        return wrong(e, "sequence number");
    if (strlen(message->torusd) >= REPORT_RELEASE_SIZE || strlen(message->dims) >= TORUS_TEXT_SIZE)
        return wrong(e, "text");
    if (message->n_interfaces > DISCOVERY_INTERFACES_MOST)
        return wrong(e, "number of interfaces");
    return 0;
}

static struct report *read_message(const Discovery__Report *message, struct error *e)
{
    struct report *report;

    if (check(message, e) != 0)
        return NULL;
    report = report_new((unsigned)message->n_interfaces);
    if (report == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for a report");
        return NULL;
    }
    (void)host_id_read(&report->host, message->host.data, message->host.len);
    (void)strcpy(report->name, message->name);
    report->sequence = message->sequence;
    (void)text_printable(report->release, sizeof report->release, message->torusd);
    (void)text_printable(report->dims, sizeof report->dims, message->dims);
    report->have_rank = message->rank > 0;
    report->rank = message->rank > 0 ? message->rank - 1 : 0;
    report->accepts_setups = message->accepts_setups;
    for (unsigned i = 0; i < report->interfaces; i++) {
        const char *name = message->interfaces[i]->name;
        const struct reported_interface *former = report_interface(report, name);
        if ((former != NULL && former < &report->interface[i] && name[0] != '\0' &&
             wrong(e, "list of interfaces: one occurs twice") != 0) ||
            read_interface(&report->interface[i], message->interfaces[i], e) != 0) {
            free(report);
            return NULL;
        }
    }
    return report;
}

struct report *report_read(const uint8_t *bytes, size_t size, struct error *e)
{
    Discovery__Report *message;
    struct report *report;

    message = size <= REPORT_BYTES_MOST
                  ? unpack_bounded(&discovery__report__descriptor, bytes, size, UNPACKED_MOST)
                  : NULL;
    if (message == NULL) {
        (void)error_set(e, ERROR_PROTOCOL, "a report cannot be read");
        return NULL;
    }
    report = read_message(message, e);
    unpack_free(message);
    return report;
}
