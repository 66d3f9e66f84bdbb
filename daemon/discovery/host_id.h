/* The id of a host: random-looking bytes that stay the same while the host keeps its machine-id and its
 * network cards. */
#ifndef TORUSD_DISCOVERY_HOST_ID_H
#define TORUSD_DISCOVERY_HOST_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HOST_ID_SIZE 16u
#define HOST_ID_TEXT_SIZE (2 * HOST_ID_SIZE + 1)

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

/* Derives an id from the text of a machine-id, which it does not reveal, and the MAC addresses of the host.
 * Machines that were cloned with their machine-id have different addresses. `macs` are sorted by the
 * function. */
void host_id_derive(struct host_id *id, const char *machine, uint8_t (*macs)[6], unsigned count);

#endif
