/* An allocator for unpacking messages of strangers: a message with a list of empty elements would otherwise
 * take many times the memory of its bytes. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

struct bounded {
    size_t left; /* bytes */
    ProtobufCAllocator allocator;
};

/* Starts an allocator that gives out at most `most` bytes. Returns the allocator, which is valid as long as
 * *b. */
ProtobufCAllocator *bounded_begin(struct bounded *b, size_t most);
