#include "daemon/torusd/files/sink/pieces.h"

#include <stdlib.h>

void pieces_drop(struct folder_sink *s, struct piece *piece)
{
    while (piece != NULL) {
        struct piece *next = piece->next;
        s->pending -= piece->bytes.length;
        slab_unref(piece->bytes.slab);
        free(piece);
        piece = next;
    }
}

void pieces_enqueue(struct folder_sink *s, uint32_t origin)
{
    struct output *o = &s->output[origin];

    if (o->queued || o->writing || o->first == NULL)
        return;
    o->queued = true;
    o->next = NONE;
    if (s->queue == NONE)
        s->queue = origin;
    else
        s->output[s->queue_end].next = origin;
    s->queue_end = origin;
}

void pieces_insert(struct output *o, struct piece *piece)
{
    struct piece **at = &o->first;

    if (o->last != NULL && o->last->offset < piece->offset)
        at = &o->last->next;
    while (*at != NULL && (*at)->offset < piece->offset)
        at = &(*at)->next;
    piece->next = *at;
    *at = piece;
    if (piece->next == NULL)
        o->last = piece;
}

bool pieces_end_at(const struct output *o, uint64_t offset)
{
    return o->first != NULL && o->last->offset + o->last->bytes.length == offset;
}

int pieces_keep_bytes(struct folder_sink *s, const struct output *o, const struct extent *bytes,
                      struct extent *kept)
{
    if (!s->in_memory || o->writing || o->fd < 0)
        return extent_keep(&s->kept, bytes->slab->pool, bytes, kept);
    *kept = *bytes;
    (void)slab_ref(bytes->slab);
    return 0;
}
