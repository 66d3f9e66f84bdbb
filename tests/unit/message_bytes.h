/* Converts messages between daemons to bytes and back. */
#pragma once

#include <stdlib.h>

#include "proto/peer/peer_message.h"

/* Unpacks bytes; NULL if they are not a message. The caller frees the message with message_forget(). */
static inline struct peer_message *message_read(const uint8_t *bytes, size_t length)
{
    struct peer_message *m = calloc(1, sizeof *m);

    if (m != NULL && peer_message_unpack(bytes, length, m, NULL) == 0)
        return m;
    free(m);
    return NULL;
}

static inline void message_forget(struct peer_message *m)
{
    if (m != NULL)
        peer_message_free(m);
    free(m);
}

struct message_room {
    uint8_t *bytes;
    size_t size;
};

static inline uint8_t *message_room(void *context, size_t size)
{
    const struct message_room *room = context;

    return size <= room->size ? room->bytes : NULL;
}

/* Returns the length; 0 if it is more than `size`. */
static inline size_t message_write(const struct peer_message *m, uint8_t *bytes, size_t size)
{
    struct message_room room = {bytes, size};

    return peer_message_write(m, message_room, &room);
}
