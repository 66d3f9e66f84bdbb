/* Sends packets. */
#pragma once

#include "daemon/lib/discovery/record.h"
#include "proto/discovery.pb-c.h"

/* Packs a packet, sets its version, and sends it over the interface with this index, to a neighbour or (NULL)
 * to all. A packet that is too long is not sent. */
void packet_send(struct discovery *d, unsigned interface, const struct discovery_address *to,
                 Discovery__Packet *packet);

/* Reports that are sent together, as many in each packet as fit without fragments. Zero-initialise. */
struct report_batch {
    unsigned interface;
    const struct discovery_address *to;
    ProtobufCBinaryData list[16];
    unsigned count;
    size_t bytes;
};

/* Adds the report of a host, and sends what does not fit into the packet with it. */
void report_batch_add(struct discovery *d, struct report_batch *b, const struct host_entry *h);
/* Sends the rest. */
void report_batch_send(struct discovery *d, struct report_batch *b);
