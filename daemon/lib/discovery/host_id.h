/* The id of a host, which is derived from its two public keys. Messages that the first key verifies come from the host.
 * Only the host can open what is sealed with the second key. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
