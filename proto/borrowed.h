/* Bytes and texts that a message only borrows: they must stay as they are until it is packed. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

static inline ProtobufCBinaryData borrowed(const void *bytes, size_t size)
{
    return (ProtobufCBinaryData){size, (uint8_t *)(uintptr_t)bytes};
}

static inline char *borrowed_text(const char *text)
{
    return (char *)(uintptr_t)text;
}
