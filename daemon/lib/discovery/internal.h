/* The state of discovery, for the files of this folder. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/lib/base/allowance.h"
#include "daemon/lib/discovery/discovery.h"
#include "proto/discovery.pb-c.h"

/* A host that this host hears on one interface. */
struct neighbour {
    struct heard from;
    struct discovery_address address;
    uint64_t until;       /* it is dropped at this time, unless a hello comes */
    uint64_t digest;      /* from its last hello */
    uint64_t summary_due; /* no summary is sent to it before */
};

struct own_interface {
    struct interface_state state;
    unsigned neighbours;
    struct neighbour neighbour[DISCOVERY_HEARD_MOST];
    uint64_t hello_due;
    /* Hellos arrive, but their senders do not answer: since when, and when this is forgotten unless another one
     * arrives. */
    uint64_t strange_since, strange_until;
    bool unanswered;            /* hellos have had no answer for longer than answers take */
    struct allowance allowance; /* for packets; see DISCOVERY_RATE */
};

struct discovery {
    struct discovery_io io;
    struct identity identity;
    struct secrets secrets;
    struct database database;
    struct report own; /* without interfaces: the fixed part of this host's report */
    unsigned interfaces;
    struct own_interface interface[DISCOVERY_INTERFACES_MOST];
    uint64_t report_due; /* of this host */
    uint64_t expiry_due; /* of the reports of others */
    uint64_t changed_at; /* when an interface or neighbour of this host changed last */
    struct setups setups;
    uint64_t setups_due;
};

static inline uint64_t discovery_now(const struct discovery *d)
{
    return d->io.now(d->io.context);
}

/* Packs a packet, sets its version, and sends it over the interface with this index, to a neighbour or (NULL)
 * to all. A packet that is too long is not sent. */
void packet_send(struct discovery *d, unsigned interface, const struct discovery_address *to,
                 Discovery__Packet *packet);

/* Bytes that arrive in chunks, in any order, some of them not at all until they are asked for again. */

#define SEALED_CHUNK 896u /* bytes: a packet with a chunk is not fragmented */
#define SEALED_MOST (256u * 1024u + 1024u)
#define SEALED_CHUNKS_MOST ((SEALED_MOST + SEALED_CHUNK - 1) / SEALED_CHUNK)
#define SEALED_WINDOW 32u /* chunks that are asked for at once */
#define SEALED_FIRST 16u  /* chunks that are sent before they are asked for */

/* Zero-initialise. */
struct sealed_message {
    uint8_t *bytes;
    size_t size;
    uint32_t chunks, missing;
    uint32_t awaited; /* asked for, and not there yet */
    bool have[SEALED_CHUNKS_MOST];
};

/* Frees the bytes; *b can be used again. */
void sealed_message_free(struct sealed_message *b);

/* Letters: signed messages from one host to another, which the hosts between them pass on. */

/* Fills a setup message about a setup for another host; it borrows the arguments. */
void setup_message_begin(const struct discovery *d, Discovery__SetupMessage *setup_message,
                         const struct host_id *to, const uint8_t setup[SETUP_ID_SIZE]);

/* Signs a setup message, and sends it on its way. It is lost if its receiver is not reachable. */
void setup_message_send(struct discovery *d, const Discovery__SetupMessage *setup_message);

/* Passes a setup message on to the neighbour on the way to its receiver. */
void setup_message_pass_on(struct discovery *d, Discovery__Relay *relay);

/* Send parts of a transfer: those that are missing, and the first ones. */
void setup_message_send_chunks(struct discovery *d, const struct host_id *to,
                               const uint8_t setup[SETUP_ID_SIZE], const uint8_t *bytes,
                               size_t size, const Discovery__Missing *missing);
void setup_message_send_first(struct discovery *d, const struct host_id *to,
                              const uint8_t setup[SETUP_ID_SIZE], const uint8_t *bytes,
                              size_t size);

/* Asks for the chunks of *b that are missing. */
void setup_message_send_missing(struct discovery *d, const struct host_id *to,
                                const uint8_t setup[SETUP_ID_SIZE], struct sealed_message *b);

/* Adds a chunk to *b, and asks for more if none is on its way. Returns whether the sealed message is whole. */
bool setup_message_take_chunk(struct discovery *d, const struct host_id *from,
                              const uint8_t setup[SETUP_ID_SIZE], struct sealed_message *b,
                              const Discovery__Chunk *chunk);

/* Which hosts this host hears on its interfaces. */

/* Sends a hello over an interface, and sets the time of the next one. `leaving`: the neighbours forget this
 * host at once. */
void neighbours_hello(struct discovery *d, struct own_interface *at, bool leaving);

/* Handles a hello. */
void neighbours_take_hello(struct discovery *d, struct own_interface *at,
                           const struct discovery_address *from, const Discovery__Signed *s);

/* Drops neighbours that have been silent for too long, or all if the interface cannot be used. */
void neighbours_expire(struct discovery *d, struct own_interface *at);

/* Notes that the report of this host must change. It is made after a short pause, so that it has all changes of a
 * moment. */
void neighbours_changed(struct discovery *d);

/* Returns the neighbour *from that this host hears on its interface `by`, and the index of that interface; NULL if it
 * hears no such neighbour. */
const struct neighbour *neighbours_find(const struct discovery *d, const char *by,
                                        const struct heard *from, unsigned *interface);

/* Notes that a packet arrived from a host with which this host cannot speak: its report has not arrived yet, or its
 * release speaks another version. If that lasts, the interface is reported as unanswered. */
void neighbours_note_stranger(const struct discovery *d, struct own_interface *at);

/* Makes the databases of neighbours equal: new reports are passed on at once; what got lost is found by
 * digests in hellos, and by summaries. */

/* The allowance of an interface: what a packet costs, and the most. */
#define SYNC_PACKET (SECONDS / DISCOVERY_RATE)
#define SYNC_ALLOWANCE (DISCOVERY_BURST * SYNC_PACKET)

/* Sends the report of this host to all neighbours. */
void sync_send_own(struct discovery *d);

/* Sends a summary to a neighbour whose digest differs, unless it has just been sent one. */
void sync_compare(struct discovery *d, const struct own_interface *at, struct neighbour *n);

/* Asks for the report of a host. */
void sync_ask(struct discovery *d, const struct own_interface *at,
              const struct discovery_address *to, const struct host_id *host);

/* Handle packets. `at` is the interface through which they came. */
void sync_take_reports(struct discovery *d, struct own_interface *at,
                       const Discovery__Reports *reports);
void sync_take_summary(struct discovery *d, struct own_interface *at,
                       const struct discovery_address *from, const Discovery__Summary *summary);
void sync_take_want(struct discovery *d, struct own_interface *at,
                    const struct discovery_address *from, const Discovery__Want *want);

/* Takes one packet from the interface's allowance for strangers. Returns whether there was one. */
bool sync_allowed(struct discovery *d, struct own_interface *at);
/* The same for a setup message that is for another host. It costs twice as much, so that a flood does not use up the
 * allowance that the next host has for this one. */
bool sync_may_pass_on(struct discovery *d, struct own_interface *at);

/* The side of a setup that sends it. */

/* Handles a setup message from the receiver. Returns false if it belongs to no setup of this host. */
bool setup_send_take(struct discovery *d, const struct host_id *from,
                     const Discovery__SetupMessage *setup_message);

/* Asks again, and gives up. Returns when to call it again. */
uint64_t setup_send_tick(struct discovery *d);

/* Forgets all setups. */
void setup_send_free(struct discovery *d);

/* The side of a setup that receives it. */

/* A setup message from the sender of a setup. */
struct received_setup_message {
    const struct host_id *from;
    const Discovery__SetupMessage *setup_message;
    unsigned interface; /* that has brought it */
    bool proved;        /* its sender has the cluster key */
};
void setup_take_message(struct discovery *d, const struct received_setup_message *l);

/* Gives the next waiting setup to io.apply(), asks for missing chunks, and forgets setups whose senders have gone
 * silent. Returns when to call it again. */
uint64_t setup_take_tick(struct discovery *d);

/* The setup that io.apply() was given has ended. */
void setup_take_ended(struct discovery *d, const struct setup_end *end);

/* Forgets all setups. */
void setup_take_free(struct discovery *d);
