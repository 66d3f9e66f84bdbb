/* Unpacks messages of strangers. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#define UNPACK_MOST ((size_t)64 * 1024 * 1024) /* where large messages are usual */

/* Unpacks a message of this type, for which at most `most` bytes are allocated: a message with a list of empty elements
 * would otherwise take many times the memory of its bytes. Returns the message, to be freed by unpack_free(); NULL: the
 * bytes are no such message, it is too large, or there is no memory. */
void *unpack_bounded(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size,
                     size_t most);

/* Frees such a message; NULL is allowed. */
void unpack_free(void *message);
