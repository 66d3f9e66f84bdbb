#include "daemon/torusd/group/data/wave.h"

#include <string.h>

#define WAVES_MOST (UINT64_C(1) << 40)

static uint64_t wave_size(struct source *s, uint32_t destination)
{
    (void)s, (void)destination;
    return WAVES_MOST * WAVE_BYTES;
}

static int wave_read(struct source *s, uint32_t destination, uint64_t offset, uint32_t most,
                     struct extent *out, struct error *e)
{
    const struct wave *w = (struct wave *)((char *)s - offsetof(struct wave, source));
    uint32_t left = WAVE_BYTES - (uint32_t)(offset % WAVE_BYTES);

    (void)destination, (void)e;
    out->slab = slab_ref(w->slab);
    out->data = w->slab->data + (offset < WAVE_BYTES ? offset : WAVE_BYTES + offset % WAVE_BYTES);
    out->length = most < left ? most : left;
    return 1;
}

static int wave_write(struct sink *s, uint32_t origin, uint64_t offset, const struct extent *piece,
                      struct error *e)
{
    struct wave *w = (struct wave *)((char *)s - offsetof(struct wave, sink));

    (void)origin, (void)e;
    if (offset < WAVE_BYTES && piece->length <= WAVE_BYTES - offset)
        memcpy((uint8_t *)&w->result + offset, piece->data, piece->length);
    return 0;
}

static const struct source_ops source_ops = {.size = wave_size, .read = wave_read};
static const struct sink_ops sink_ops = {.write = wave_write, .pending = sink_never_pending};

int wave_init(struct wave *w, uint64_t value, struct error *e)
{
    *w = (struct wave){.source = {.ops = &source_ops}, .sink = {.ops = &sink_ops}};
    w->slab = slab_without_pool(2 * WAVE_BYTES, NULL, NULL);
    if (w->slab == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a call");
    memset(w->slab->data, 0, 2 * WAVE_BYTES);
    memcpy(w->slab->data, &value, sizeof value);
    return 0;
}

void wave_free(struct wave *w)
{
    if (w->slab != NULL)
        slab_unref(w->slab);
    *w = (struct wave){0};
}
