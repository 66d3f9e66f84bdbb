#include "daemon/torusd/copy/memory.h"

#include <stdlib.h>

static void free_memory(struct program_memory *memory)
{
    free(memory->data);
    free(memory);
}

struct program_memory *copy_memory_new(uint64_t size)
{
    struct program_memory *memory = malloc(sizeof *memory);

    if (memory == NULL)
        return NULL;
    *memory = (struct program_memory){malloc(size > 0 ? size : 1), size, 1, free_memory};
    if (memory->data != NULL)
        return memory;
    free(memory);
    return NULL;
}
