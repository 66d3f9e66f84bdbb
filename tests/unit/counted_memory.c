#include "tests/unit/counted_memory.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>

static int64_t now, peak;
static unsigned left;
static bool armed, failed;

void memory_count(void)
{
    now = peak = 0;
}

size_t memory_peak(void)
{
    return (size_t)peak;
}

void memory_fail(unsigned after)
{
    left = after;
    armed = true;
    failed = false;
}

bool memory_has_failed(void)
{
    armed = false;
    return failed;
}

static bool fails_now(void)
{
    if (!armed || failed || left-- > 0)
        return false;
    failed = true;
    errno = ENOMEM;
    return true;
}

static void *count(void *pointer)
{
    now += (int64_t)malloc_usable_size(pointer);
    peak = now > peak ? now : peak;
    return pointer;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
void *__real_reallocarray(void *pointer, size_t count, size_t size);
void __real_free(void *pointer);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t number, size_t size);
void *__wrap_realloc(void *pointer, size_t size);
void *__wrap_reallocarray(void *pointer, size_t number, size_t size);
void __wrap_free(void *pointer);

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : count(__real_malloc(size));
}

void *__wrap_calloc(size_t number, size_t size)
{
    return fails_now() ? NULL : count(__real_calloc(number, size));
}

void *__wrap_realloc(void *pointer, size_t size)
{
    int64_t before = (int64_t)malloc_usable_size(pointer);
    void *larger = fails_now() ? NULL : __real_realloc(pointer, size);

    if (larger != NULL)
        now -= before;
    return count(larger);
}

void *__wrap_reallocarray(void *pointer, size_t number, size_t size)
{
    int64_t before = (int64_t)malloc_usable_size(pointer);
    void *larger = fails_now() ? NULL : __real_reallocarray(pointer, number, size);

    if (larger != NULL)
        now -= before;
    return count(larger);
}

void __wrap_free(void *pointer)
{
    now -= (int64_t)malloc_usable_size(pointer);
    __real_free(pointer);
}
