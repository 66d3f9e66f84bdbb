/* The blocks of a call that may be made again: what it then sends and receives. */
#include <string.h>

#include "daemon/torusd/group/data/blocks.h"

static bool result_is_everywhere(const struct blocks *b)
{
    return b->layout == LAYOUT_VECTOR && b->what->call.operation != GROUP_REDUCE_SCATTER &&
           b->what->call.operation != GROUP_REDUCE;
}

/* Makes a vector in a slab the data to send. */
static int replace_sent(struct blocks *b, const uint8_t *vector, struct error *e)
{
    struct slab *slab = slab_without_pool(b->what->total, NULL, NULL);

    if (slab == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a call");
    if (vector != NULL)
        memcpy(slab->data, vector, b->what->total);
    else
        memset(slab->data, 0, b->what->total);
    slab_unref(b->sent);
    b->sent = slab;
    b->from = slab->data;
    b->copied = true;
    return 0;
}

int blocks_keep(struct blocks *b, struct error *e)
{
    if (b->kept)
        return 0;
    if (b->layout == LAYOUT_VECTOR &&
        replace_sent(b, result_is_everywhere(b) ? b->to : b->from, e) != 0)
        return -1;
    if (!b->copied) { /* nothing is sent, or no bytes: the program's memory is not needed */
        struct slab *slab = slab_without_pool((size_t)b->senders * DIGEST_SIZE, NULL, NULL);
        if (slab == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory for a call");
        slab_unref(b->sent);
        b->sent = slab;
        b->digest = slab->data;
        b->from = NULL;
        b->copied = true;
    }
    overwritten_forget(&b->overwritten, UINT64_MAX); /* the program has its memory back */
    b->kept = true;
    b->to = NULL;
    return 0;
}

int blocks_contribute_nothing(struct blocks *b, struct error *e)
{
    return replace_sent(b, NULL, e);
}

void blocks_rewind(struct blocks *b)
{
    for (uint32_t i = 0; b->passing_out != NULL && i < b->senders; i++)
        digest_drop(&b->passing_out[i]);
    for (uint32_t i = 0; i < b->members->count; i++) {
        b->got[i] = 0;
        if (b->passing_in != NULL)
            digest_drop(&b->passing_in[i]);
    }
    b->bytes_in = b->bytes_out = 0;
    b->ready = true;
}
