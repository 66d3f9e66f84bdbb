/* Discovery without I/O: finds neighbours on the interfaces of this host, spreads what all hosts say, and
 * relays setups. Time, randomness, datagrams and what applies setups come through struct discovery_io, so
 * that a whole cluster runs in one test. daemon/doc/discovery.md describes the protocol. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/lib/base/limits.h"
#include "daemon/lib/discovery/database.h"
#include "proto/error.h"

/* Times of discovery, in nanoseconds, and its limits. */

/* Hellos are sent at short intervals while something changes, and at long ones when nothing has changed for
 * DISCOVERY_SETTLED and DISCOVERY_CALM. A neighbour is dropped after HOLD intervals without a hello. */
#define DISCOVERY_HELLO_FIRST (500 * MILLISECONDS)
#define DISCOVERY_HELLO (1 * SECONDS)
#define DISCOVERY_HELLO_CALM (3 * SECONDS)
#define DISCOVERY_SETTLED (10 * SECONDS)
#define DISCOVERY_CALM (60 * SECONDS)
#define DISCOVERY_HOLD_INTERVALS 8u
#define DISCOVERY_HOLD_MOST_MS 60000u /* what a neighbour's hello may ask for */
/* Changes that come within this time go into one report. */
#define DISCOVERY_REPORT_PAUSE (150 * MILLISECONDS)
/* Reports of one host that come closer together are not taken, and so not passed on. */
#define DISCOVERY_REPORT_SPACING (50 * MILLISECONDS)
#define DISCOVERY_REPORT_RENEWAL (60 * SECONDS)
/* A report that its host has not renewed is dropped, even if other hosts vouch for the host. */
#define DISCOVERY_REPORT_LIFE (200 * SECONDS)
/* How long a host is kept that no confirmed cable leads to. */
#define DISCOVERY_LOST_LIFE (10 * SECONDS)
/* Hellos of a host that does not answer for this long are reported, until none has come for a hold time. */
#define DISCOVERY_UNANSWERED (5 * SECONDS)
/* A summary is sent to one neighbour at most once in this time. */
#define DISCOVERY_SUMMARY_PAUSE (400 * MILLISECONDS)
/* How many packets of strangers each interface may bring: signatures to check, and answers that are sent. */
#define DISCOVERY_RATE 500u /* a second */
#define DISCOVERY_BURST 2000u

/* Setups: bytes for one host, which gives them to its command, and sends back the exit status and the output. Here they
 * only travel: sealed for the host that may open them (seal.h), from neighbour to neighbour, by hosts that can neither
 * read nor change them.
 *
 * The host answers the announcement (Ask) with a challenge. The setup contains the challenge, so that an old
 * setup cannot be sent again; if the host has a cluster key, the setup must be authenticated by it. The receiver
 * of each transfer asks for the parts that it has not got, so that lost packets are sent again. */

#define DISCOVERY_SETUP_MOST (256u * 1024u) /* bytes of a setup */
#define SETUP_ID_SIZE 16u
#define NONCE_SIZE 32u
#define SETUP_SOCKET "/run/torusd-setup/setup.sock" /* where torusd-setup listens */
#define SETUPS_OUT_MOST 16u                         /* that this host sends at the same time */
#define SETUPS_IN_MOST                                                                             \
    4u /* that this host receives at the same time; one of them is applied at a time */

struct discovery;
struct outgoing_setup;
struct incoming_setup;

struct setups {
    struct outgoing_setup *out[SETUPS_OUT_MOST];
    struct incoming_setup *in[SETUPS_IN_MOST];
    struct incoming_setup *given; /* to io.apply(); NULL: none, or its sender has been forgotten */
    bool busy;                    /* io.apply() has one */
    uint8_t nonce[NONCE_SIZE];    /* for challenges */
};

/* What a setup has to be sealed with; everything is borrowed. */
struct setup_challenge {
    const uint8_t *id; /* SETUP_ID_SIZE bytes */
    const struct host_id *from;
    const uint8_t *key;   /* PUBLIC_KEY_SIZE bytes: the receiver's */
    const uint8_t *nonce; /* NONCE_SIZE bytes */
};

/* The end of a setup: its sealed result; or, with e.code other than ERROR_NONE, why there is none. */
struct setup_end {
    struct error e;
    const uint8_t *sealed;
    size_t size;
};

/* Called from discovery_tick(), discovery_receive() or discovery_send_sealed(); everything is borrowed. After ended(),
 * the setup does not exist any more. */
struct setup_user {
    void (*challenged)(void *context, const struct setup_challenge *challenge);
    void (*ended)(void *context, const struct setup_end *end);
    void *context;
};

/* Announces a setup to another host, whose challenge follows. Returns a setup, or NULL with *e and no call of *user. */
struct outgoing_setup *discovery_send_setup(struct discovery *d, const struct host_id *host,
                                            const struct setup_user *user, struct error *e);

/* Sends the sealed setup (copied) that the challenge has asked for. */
void discovery_send_sealed(struct discovery *d, struct outgoing_setup *setup, const uint8_t *bytes,
                           size_t size);

/* Forgets a setup; ended() is not called. The host may apply it anyway. */
void discovery_cancel_setup(struct discovery *d, struct outgoing_setup *setup);

/* The setup that io.apply() was given has ended. With e.code other than ERROR_NONE it was refused. */
void discovery_setup_ended(struct discovery *d, const struct setup_end *end);

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

/* Returns what is known about all hosts, up to date; valid until the next call. */
const struct database *discovery_database(struct discovery *d);

/* Returns the id of this host. */
const struct host_id *discovery_id(const struct discovery *d);

/* Returns the derived keys in use. */
const struct secrets *discovery_secrets(const struct discovery *d);
