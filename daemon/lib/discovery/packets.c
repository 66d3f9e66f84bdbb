#include "daemon/lib/discovery/packets.h"

#include <stdlib.h>

#include "proto/borrowed.h"

#define UNFRAGMENTED 1200u /* bytes that fit into one packet on every IPv6 link */

void packet_send(struct discovery *d, unsigned interface, const struct discovery_address *to,
                 Discovery__Packet *packet)
{
    uint8_t small[UNFRAGMENTED + 64], *bytes = small;
    size_t size;

    packet->version = DISCOVERY_VERSION;
    size = discovery__packet__get_packed_size(packet);
    if (size > DISCOVERY_PACKET_MOST)
        return;
    if (size > sizeof small)
        bytes = malloc(size);
    if (bytes == NULL)
        return; /* like a lost packet */
    (void)discovery__packet__pack(packet, bytes);
    d->io.send(d->io.context, interface, to, bytes, size);
    if (bytes != small)
        free(bytes);
}

void report_batch_send(struct discovery *d, struct report_batch *b)
{
    Discovery__Packet packet = DISCOVERY__PACKET__INIT;
    Discovery__Reports reports = DISCOVERY__REPORTS__INIT;

    if (b->count == 0)
        return;
    reports.n_reports = b->count;
    reports.reports = b->list;
    packet.kind_case = DISCOVERY__PACKET__KIND_REPORTS;
    packet.reports = &reports;
    packet_send(d, b->interface, b->to, &packet);
    b->count = 0;
    b->bytes = 0;
}

void report_batch_add(struct discovery *d, struct report_batch *b, const struct host_entry *h)
{
    if (b->count == sizeof b->list / sizeof b->list[0] ||
        (b->count > 0 && b->bytes + h->packed_size > UNFRAGMENTED))
        report_batch_send(d, b);
    b->list[b->count++] = borrowed(h->packed, h->packed_size);
    b->bytes += h->packed_size + 4;
}
