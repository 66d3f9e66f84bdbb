#include "proto/unpack.h"

#include <stdlib.h>

static void *take(void *left, size_t size)
{
    size_t *bytes = left;

    if (size > *bytes)
        return NULL;
    *bytes -= size;
    return malloc(size > 0 ? size : 1);
}

static void release(void *left, void *pointer)
{
    (void)left;
    free(pointer);
}

void *unpack_bounded(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size,
                     size_t most)
{
    ProtobufCAllocator allocator = {take, release, &most};

    return protobuf_c_message_unpack(type, &allocator, size, bytes);
}

void unpack_free(void *message)
{
    ProtobufCAllocator allocator = {take, release, NULL};

    if (message != NULL)
        protobuf_c_message_free_unpacked(message, &allocator);
}
