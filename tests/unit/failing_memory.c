#include "failing_memory.h"

#include <stddef.h>
#include <stdint.h>

#include "daemon/torusd/router/decoder.h"
#include "daemon/torusd/router/router.h"

static bool armed, failed, everywhere;
static unsigned inside, left;

void memory_fails(unsigned after)
{
    armed = true;
    failed = false;
    left = after;
}

void memory_fails_everywhere(unsigned after)
{
    memory_fails(after);
    everywhere = true;
}

bool memory_failed(void)
{
    armed = everywhere = false;
    return failed;
}

void memory_counts_here(bool here)
{
    inside = here ? inside + 1 : inside - 1;
}

static bool fails_now(void)
{
    if (!armed || (inside == 0 && !everywhere) || failed || left-- > 0)
        return false;
    failed = true;
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
void *__real_reallocarray(void *pointer, size_t count, size_t size);
void __real_link_received(struct link *link, size_t length);
struct outgoing *__real_link_next(struct link *link);
int __real_decoder_feed(struct decoder *d, struct slab *slab, const uint8_t *data, size_t length,
                        decoder_frame_fn frame, void *context, struct error *e);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *pointer, size_t size);
void *__wrap_reallocarray(void *pointer, size_t count, size_t size);
void __wrap_link_received(struct link *link, size_t length);
struct outgoing *__wrap_link_next(struct link *link);
int __wrap_decoder_feed(struct decoder *d, struct slab *slab, const uint8_t *data, size_t length,
                        decoder_frame_fn frame, void *context, struct error *e);

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *pointer, size_t size)
{
    return fails_now() ? NULL : __real_realloc(pointer, size);
}

void *__wrap_reallocarray(void *pointer, size_t count, size_t size)
{
    return fails_now() ? NULL : __real_reallocarray(pointer, count, size);
}

void __wrap_link_received(struct link *link, size_t length)
{
    inside++;
    __real_link_received(link, length);
    inside--;
}

struct outgoing *__wrap_link_next(struct link *link)
{
    inside++;
    struct outgoing *frame = __real_link_next(link);
    inside--;
    return frame;
}

int __wrap_decoder_feed(struct decoder *d, struct slab *slab, const uint8_t *data, size_t length,
                        decoder_frame_fn frame, void *context, struct error *e)
{
    inside++;
    int result = __real_decoder_feed(d, slab, data, length, frame, context, e);
    inside--;
    return result;
}
