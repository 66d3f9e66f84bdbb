/* Every field of proto/peer.proto that a head has, and the worst that can be said in it. */
#ifndef TORUSD_TESTS_SIM_LIES_H
#define TORUSD_TESTS_SIM_LIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/peer.pb-c.h"

#define LIE_DEPTH 4u
#define LIE_NAME_SIZE 80u

/* A field by the way that leads to it. In lists it is that of the first element. */
struct lie_field {
    char name[LIE_NAME_SIZE]; /* as proto/peer-trust.md has it: "NodeReport.port" */
    Peer__Head__KindCase kind;
    unsigned depth;
    const ProtobufCFieldDescriptor *way[LIE_DEPTH]; /* from the kind's message on */
};

/* All of them, at most `most`; returns how many there are. */
size_t lie_fields(struct lie_field *out, size_t most);

/* Values that lie_tell() has for a field. */
unsigned lie_count(const struct lie_field *field);
/* Says the value-th lie in this field of a message that was unpacked, which can still be freed as such
 * afterwards. Returns false if it is about something that the message does not have, or of another kind. */
bool lie_tell(Peer__Head *head, const struct lie_field *field, unsigned value);

/* A frame's head, unpacked, and where its body begins; NULL if it cannot be read. The caller frees it. */
Peer__Head *lie_read(const uint8_t *bytes, size_t length, size_t *body);
/* The head as a frame with this body (borrowed), malloc'ed. */
uint8_t *lie_frame(const Peer__Head *head, const uint8_t *body, size_t body_length, size_t *length);

#endif
