/* What a host says about itself: its interfaces, and the neighbours that it hears on them. */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "daemon/lib/schedule/torus.h"
#include "proto/error.h"

/* The id of a host, which is derived from its two public keys. Messages that the first key verifies come from the host.
 * Only the host can open what is sealed with the second key. */

#define HOST_ID_SIZE 16u
#define HOST_ID_TEXT_SIZE (2 * HOST_ID_SIZE + 1)
#define SIGNING_KEY_SIZE 32u /* Ed25519 */
#define SEALING_KEY_SIZE 32u /* X25519 */
#define PUBLIC_KEY_SIZE (SIGNING_KEY_SIZE + SEALING_KEY_SIZE)

struct host_id {
    uint8_t bytes[HOST_ID_SIZE];
};

static inline int host_id_compare(const struct host_id *a, const struct host_id *b)
{
    return memcmp(a->bytes, b->bytes, HOST_ID_SIZE);
}

static inline bool host_id_is(const struct host_id *a, const struct host_id *b)
{
    return host_id_compare(a, b) == 0;
}

/* Copies an id from a message. Returns whether the bytes have the length of an id. */
static inline bool host_id_read(struct host_id *id, const uint8_t *bytes, size_t size)
{
    if (size != HOST_ID_SIZE)
        return false;
    memcpy(id->bytes, bytes, HOST_ID_SIZE);
    return true;
}

/* Derives the id of the host with these public keys. */
struct host_id host_id_of(const uint8_t public_key[PUBLIC_KEY_SIZE]);

/* Writes the 32 hexadecimal digits of an id. Returns `text`. */
char *host_id_text(const struct host_id *id, char text[HOST_ID_TEXT_SIZE]);

/* Reads an id from its digits. Returns whether the text is one. */
bool host_id_parse(struct host_id *id, const char *text);

#define DISCOVERY_INTERFACES_MOST 64u /* of a host */
#define DISCOVERY_HEARD_MOST 16u      /* neighbours on an interface */
#define REPORT_NAME_SIZE 65u          /* of a host's name */
#define REPORT_RELEASE_SIZE 33u
#define REPORT_BYTES_MOST 49152u /* of a packed report */
#define REPORT_SEQUENCE_MOST (UINT64_C(1) << 62)
#define MAC_SIZE 6u

/* A neighbour, and the interface through which it sends. */
struct heard {
    struct host_id host;
    char interface[IFNAMSIZ];
};

struct reported_interface {
    char name[IFNAMSIZ];
    uint8_t mac[MAC_SIZE];
    uint32_t mtu, speed_mbit; /* speed 0: unknown */
    bool up, carrier;
    bool ipv6; /* has a link-local address */
    char member_of
        [IFNAMSIZ]; /* the bridge or bond that it is a port of, and which gets its packets; "": none */
    bool unanswered; /* hellos arrive from hosts that do not answer */
    unsigned heards;
    struct heard heard[DISCOVERY_HEARD_MOST];
};

struct report {
    struct host_id host;
    char name[REPORT_NAME_SIZE];
    uint64_t sequence; /* the report with the highest number is valid */
    char release[REPORT_RELEASE_SIZE];
    char dims[TORUS_TEXT_SIZE]; /* as configured; "": not configured */
    bool have_rank;
    uint32_t rank; /* as configured, if have_rank */
    bool accepts_setups;
    unsigned interfaces;
    struct reported_interface interface[];
};

/* Returns a zeroed report with room for that many interfaces, which the caller frees with free(); or NULL if there is
 * not enough memory. */
struct report *report_new(unsigned interfaces);

/* Packs a report. Returns *size malloc'ed bytes, or NULL if there is no memory. */
uint8_t *report_pack(const struct report *report, size_t *size);

/* Reads a report from bytes that somebody else has sent. Returns a report to be freed with free(), or NULL
 * with *e: the bytes are not a report, a name has bytes that no name has, or a list is too long. */
struct report *report_read(const uint8_t *bytes, size_t size, struct error *e);

/* Returns the interface with a name, or NULL if the host has no such interface. */
const struct reported_interface *report_interface(const struct report *report, const char *name);

/* Whether the host hears `interface` of `host` on interface `at`. */
bool report_hears(const struct reported_interface *at, const struct host_id *host,
                  const char *interface);

/* Whether a text can be the name of an interface: 1 to 15 letters, digits, and _ . : @ - . */
bool interface_name_is_valid(const char *name);

/* Whether a text can be the name of a host: letters, digits, and . _ - , at most REPORT_NAME_SIZE - 1. */
bool host_name_is_valid(const char *name);
