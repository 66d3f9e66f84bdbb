/* Messages about a link itself, and about the links of other nodes, as plain structs. peer.proto
 * says what each field means; the names are the same. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peer_bytes {
    const uint8_t *data; /* may be NULL if len is 0 */
    size_t len;
};

struct peer_hello {
    uint32_t version;
    const char *dims;
    uint32_t rank;
    uint32_t port;
    uint64_t boot;
    size_t n_key;
    const struct peer_bytes *key;
    struct peer_bytes challenge;
    bool encrypt;
    struct peer_bytes ephemeral;
    uint32_t minor;
};

struct peer_proof {
    struct peer_bytes digest;
};

struct peer_probe {
    struct peer_bytes filler;
};

struct peer_probe_answered {
    uint32_t bytes;
};

struct peer_refusal {
    const char *reason;
};

struct peer_heartbeat {
    uint32_t interval_ms;
    uint64_t at, echo, held;
    struct peer_bytes filler;
};

struct peer_link_state_entry {
    uint32_t rank;
    uint32_t hops;
    uint32_t up;
    uint64_t boot;
    uint32_t version;
    uint32_t minor;
    uint64_t confirmed;
    uint32_t forwards;
    uint32_t quiet;
    size_t n_rates;
    const uint32_t *rates;
};

struct peer_link_state {
    size_t n_entry;
    const struct peer_link_state_entry *entry;
};

struct peer_link_fault {
    uint32_t rank;
    uint32_t port;
    uint64_t boot;
    uint32_t number;
    uint32_t code;
    uint32_t found_rank;
    uint32_t found_port;
    uint32_t left;
    uint32_t sent;
    uint32_t mtu;
};

/* Writes a hello that stands alone, in a datagram, to at most `size` bytes. Returns its length,
 * or 0 if it is longer than `size` or there is no memory. */
size_t peer_hello_write(const struct peer_hello *hello, uint8_t *bytes, size_t size);

/* Calls heard() with a hello that stands alone, which is valid during that call only. Returns 0,
 * or -1 if the bytes are not a hello or there is no memory. */
int peer_hello_read(const uint8_t *bytes, size_t length,
                    void (*heard)(void *context, const struct peer_hello *hello), void *context);
