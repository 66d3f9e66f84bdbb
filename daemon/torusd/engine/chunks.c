#include "daemon/torusd/engine/chunks.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define FIRST_ROOM 32u

void chunks_init(struct chunks *c)
{
    *c = (struct chunks){.unused = NONE};
}

void chunks_free(struct chunks *c)
{
    for (uint32_t i = 0; i < c->room; i++)
        chunk_drop(&c->chunk[i].bytes);
    free(c->chunk);
    chunks_init(c);
}

struct chain chain_empty(void)
{
    return (struct chain){NONE, NONE};
}

bool chain_is_empty(const struct chain *chain)
{
    return chain->first == NONE;
}

static int make_room(struct chunks *c)
{
    uint32_t room = c->room == 0 ? FIRST_ROOM : 2 * c->room;
    struct chunk *chunk = reallocarray(c->chunk, room, sizeof *chunk);

    if (chunk == NULL)
        return -1;
    for (uint32_t i = c->room; i < room; i++)
        chunk[i] = (struct chunk){.next = i + 1 < room ? i + 1 : NONE};
    c->unused = c->room;
    c->chunk = chunk;
    c->room = room;
    return 0;
}

int chain_append(struct chunks *c, struct chain *chain, const struct extent *bytes)
{
    if (c->unused == NONE && make_room(c) != 0)
        return -1;
    uint32_t at = c->unused;
    c->unused = c->chunk[at].next;
    c->chunk[at] = (struct chunk){*bytes, NONE};
    if (bytes->slab != NULL)
        (void)slab_ref(bytes->slab);
    if (chain->first == NONE)
        chain->first = at;
    else
        c->chunk[chain->last].next = at;
    chain->last = at;
    return 0;
}

bool chain_extend(struct chunks *c, const struct chain *chain, const struct extent *bytes)
{
    if (chain_is_empty(chain))
        return false;
    struct extent *end = &c->chunk[chain->last].bytes;
    if (end->slab != bytes->slab || end->data + end->length != bytes->data)
        return false;
    end->length += bytes->length;
    return true;
}

const struct extent *chain_first(const struct chunks *c, const struct chain *chain)
{
    return &c->chunk[chain->first].bytes;
}

struct extent chain_pop(struct chunks *c, struct chain *chain)
{
    uint32_t at = chain->first;
    struct extent bytes = c->chunk[at].bytes;

    chain->first = c->chunk[at].next;
    c->chunk[at] = (struct chunk){.next = c->unused};
    c->unused = at;
    return bytes;
}

void chain_clear(struct chunks *c, struct chain *chain)
{
    while (!chain_is_empty(chain)) {
        struct extent bytes = chain_pop(c, chain);
        chunk_drop(&bytes);
    }
}

int chunk_gather(const struct extents *body, struct extent_cursor *cursor, uint32_t length,
                 struct extent *out)
{
    struct extent run;
    uint32_t n = extents_take(body, cursor, length, &run);

    *out = (struct extent){0};
    if (length == 0)
        return 0;
    if (n == length && length > CHUNKS_COPIED_MOST) {
        *out = run;
        (void)slab_ref(run.slab);
        return 0;
    }
    struct slab *slab = slab_without_pool(length, NULL, NULL);
    if (slab == NULL)
        return -1;
    *out = (struct extent){slab, slab->data, length};
    for (uint32_t at = 0; n > 0; n = extents_take(body, cursor, length - at, &run)) {
        memcpy(slab->data + at, run.data, n);
        at += n;
    }
    return 0;
}

void chunk_drop(const struct extent *bytes)
{
    if (bytes->slab != NULL)
        slab_unref(bytes->slab);
}
