/* Every field of a head in proto/peer_fields.h, and the worst values for it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/peer.pb-c.h"

#define LIE_DEPTH 4u
#define LIE_NAME_SIZE 80u

/* A field, by its path. In a list, the field of the first element. */
struct lie_field {
    char name[LIE_NAME_SIZE]; /* as in proto/peer-trust.md: "NodeReport.port" */
    Peer__Head__KindCase kind;
    unsigned depth;
    const ProtobufCFieldDescriptor *way[LIE_DEPTH]; /* from the kind's message on */
};

/* Stores all fields, at most `most`. Returns their number. */
size_t lie_fields(struct lie_field *out, size_t most);

/* The number of lies that lie_tell() has for a field. */
unsigned lie_count(const struct lie_field *field);
/* Puts the value-th lie into this field of an unpacked message, which can still be freed as usual. Returns false if
 * the message lacks the field, or is of another kind. */
bool lie_tell(Peer__Head *head, const struct lie_field *field, unsigned value);

/* Unpacks the head of a frame, and sets where its body begins; NULL if it cannot be read. The caller frees it. */
Peer__Head *lie_read(const uint8_t *bytes, size_t length, size_t *body);
/* Packs a head and a body (borrowed) into a frame, malloc'ed. */
uint8_t *lie_frame(const Peer__Head *head, const uint8_t *body, size_t body_length, size_t *length);
