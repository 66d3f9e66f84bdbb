#include "tests/sim/memory.h"

#include <stdlib.h>

uint64_t *volatile memory_countdown;

void *sim_alloc(size_t size)
{
    uint64_t *countdown = memory_countdown;

    memory_countdown = NULL;
    void *new = calloc(1, size > 0 ? size : 1);
    memory_countdown = countdown;
    if (new == NULL)
        abort();
    return new;
}

void *sim_realloc(void *old, size_t size)
{
    uint64_t *countdown = memory_countdown;

    memory_countdown = NULL;
    void *new = realloc(old, size);
    memory_countdown = countdown;
    if (new == NULL)
        abort();
    return new;
}

void *sim_grow(void *array, size_t count, size_t size)
{
    return (count & (count - 1)) == 0 ? sim_realloc(array, (count > 0 ? 2 * count : 1) * size)
                                      : array;
}
