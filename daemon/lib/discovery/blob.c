#include "daemon/lib/discovery/blob.h"

#include <stdlib.h>
#include <string.h>

/* Allocates the bytes when the first chunk arrives. Returns whether there is a blob of this size. */
static bool begin(struct blob *b, size_t size, size_t most)
{
    if (b->bytes != NULL)
        return b->size == size;
    if (size == 0 || size > most || size > BLOB_MOST)
        return false;
    b->bytes = malloc(size);
    if (b->bytes == NULL)
        return false;
    b->size = size;
    b->chunks = b->missing = blob_chunks(size);
    return true;
}

void blob_add(struct blob *b, size_t size, size_t most, uint32_t index, const uint8_t *bytes,
              size_t length)
{
    if (!begin(b, size, most) || index >= b->chunks || b->have[index] ||
        length != blob_chunk_size(size, index))
        return;
    memcpy(b->bytes + (size_t)index * BLOB_CHUNK, bytes, length);
    b->have[index] = true;
    b->missing--;
    if (b->awaited > 0)
        b->awaited--;
}

bool blob_is_whole(const struct blob *b)
{
    return b->bytes != NULL && b->missing == 0;
}

uint32_t blob_ask(struct blob *b, uint32_t list[BLOB_WINDOW])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < b->chunks && count < BLOB_WINDOW; i++)
        if (!b->have[i])
            list[count++] = i;
    b->awaited = count;
    return count;
}

void blob_free(struct blob *b)
{
    free(b->bytes);
    *b = (struct blob){0};
}
