/* Discovery without I/O: finds neighbours on the interfaces of this host, spreads what all hosts say, and
 * relays setups (setup.h). Time, randomness, datagrams and what applies setups come through struct discovery_io, so
 * that a whole cluster runs in one test. daemon/doc/discovery.md describes the protocol. */
#pragma once

#include "daemon/lib/discovery/database.h"
#include "daemon/lib/discovery/setup.h"

#define DISCOVERY_ADDRESS_SIZE 16u
#define DISCOVERY_PACKET_MOST 61440u
#define DISCOVERY_VERSION 2u
#define DISCOVERY_PORT 7412u /* of UDP */

/* The link-local address of a neighbour. */
struct discovery_address {
    uint8_t bytes[DISCOVERY_ADDRESS_SIZE];
};

struct discovery_io {
    /* Returns the time in nanoseconds; it never goes back. */
    uint64_t (*now)(void *context);
    void (*random)(void *context, void *bytes, size_t size);
    /* Sends a datagram over an interface, to a neighbour or (NULL) to all neighbours. It may get lost. */
    void (*send)(void *context, unsigned interface, const struct discovery_address *to,
                 const uint8_t *bytes, size_t size);
    /* Gives a setup that has arrived (borrowed) to what opens and applies it; discovery_setup_ended() follows, but not
     * from inside this function. NULL: this host accepts no setups. */
    void (*apply)(void *context, const uint8_t id[SETUP_ID_SIZE], const struct host_id *from,
                  const uint8_t *sealed, size_t size);
    void *context;
};

/* An interface of this host. */
struct interface_state {
    unsigned index; /* not 0; the same as long as the interface exists */
    char name[IFNAMSIZ];
    uint8_t mac[MAC_SIZE];
    uint32_t mtu, speed_mbit; /* speed 0: unknown */
    bool up, carrier, ipv6;
    char member_of[IFNAMSIZ]; /* the bridge or bond that it is a port of; "": none */
};

struct discovery_setup {
    struct discovery_io io;
    const char *name; /* host_name_is_valid() */
    const char *release;
    const struct identity *identity; /* copied */
    /* The reports of this process get higher numbers than this one, which must be higher than the numbers of former
     * processes of this host: the present time will do. If it is too low, the host finds out when it hears a former
     * report of its own. */
    uint64_t sequence;
};

struct discovery;

/* Texts of *setup are copied. Returns NULL if there is no memory. */
struct discovery *discovery_new(const struct discovery_setup *setup);
/* Tells the neighbours that this host leaves, and frees *d; setups under way end without an answer. */
void discovery_free(struct discovery *d);

/* Replaces the list of this host's interfaces. Interfaces beyond DISCOVERY_INTERFACES_MOST are ignored. */
void discovery_set_interfaces(struct discovery *d, const struct interface_state *list,
                              unsigned count);

/* Says what this host's daemon is configured to be: dims "" and no rank at the beginning. */
void discovery_set_node(struct discovery *d, const char *dims, bool have_rank, uint32_t rank);

/* Replaces the derived keys (copied; discovery_key_make()). There are none at the beginning. */
void discovery_set_secrets(struct discovery *d, const struct secrets *secrets);

/* Says whether this host accepts setups now, and the nonce of its challenges. */
void discovery_set_setups(struct discovery *d, bool accepts, const uint8_t nonce[NONCE_SIZE]);

/* Handles a datagram that arrived on an interface from the other end of its cable. */
void discovery_receive(struct discovery *d, unsigned interface,
                       const struct discovery_address *from, const uint8_t *bytes, size_t size);

/* discovery_tick() does what is due; discovery_deadline() returns when it must be called next. Call both after any of
 * the other functions. */
uint64_t discovery_deadline(const struct discovery *d);
void discovery_tick(struct discovery *d);

/* Returns what is known of all hosts, up to date; valid until the next call. */
const struct database *discovery_database(struct discovery *d);

/* Returns the id of this host. */
const struct host_id *discovery_id(const struct discovery *d);

/* Returns the derived keys in use. */
const struct secrets *discovery_secrets(const struct discovery *d);
