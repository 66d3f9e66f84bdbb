#include "daemon/lib/discovery/bounded.h"

#include <stdlib.h>

static void *take(void *context, size_t size)
{
    struct bounded *b = context;

    if (size > b->left)
        return NULL;
    b->left -= size;
    return malloc(size > 0 ? size : 1);
}

static void release(void *context, void *pointer)
{
    (void)context;
    free(pointer);
}

ProtobufCAllocator *bounded_begin(struct bounded *b, size_t most)
{
    b->left = most;
    b->allocator = (ProtobufCAllocator){take, release, b};
    return &b->allocator;
}
