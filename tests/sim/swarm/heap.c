/* Counts the allocations of code that is linked into this program, and makes them fail when tests/sim/memory.h says
 * so. The linker puts these functions in front of the real ones (--wrap); shared libraries keep theirs. */
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/memory.h"
#include "tests/sim/swarm/swarm.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t most);
void __wrap_free(void *p);

static uint64_t used;

uint64_t heap_used(void)
{
    return used;
}

static bool must_fail(void)
{
    if (memory_countdown == NULL || *memory_countdown == 0 || --*memory_countdown > 0)
        return false;
    errno = ENOMEM;
    return true;
}

static void *count(void *p)
{
    used += malloc_usable_size(p);
    return p;
}

void *__wrap_malloc(size_t size)
{
    return must_fail() ? NULL : count(__real_malloc(size));
}

void *__wrap_calloc(size_t count_, size_t size)
{
    return must_fail() ? NULL : count(__real_calloc(count_, size));
}

void *__wrap_realloc(void *old, size_t size)
{
    if (must_fail())
        return NULL;
    used -= malloc_usable_size(old);
    void *new = __real_realloc(old, size);
    return count(new != NULL ? new : old) == NULL ? NULL : new;
}

void *__wrap_reallocarray(void *old, size_t count_, size_t size)
{
    size_t all;

    if (__builtin_mul_overflow(count_, size, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return __wrap_realloc(old, all);
}

char *__wrap_strndup(const char *text, size_t most)
{
    size_t length = strnlen(text, most);
    char *copy = __wrap_malloc(length + 1);

    if (copy == NULL)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *__wrap_strdup(const char *text)
{
    return __wrap_strndup(text, SIZE_MAX);
}

void __wrap_free(void *p)
{
    used -= malloc_usable_size(p);
    __real_free(p);
}
