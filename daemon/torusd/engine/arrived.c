#include "daemon/torusd/engine/arrived.h"

#include <stdlib.h>

#include "daemon/lib/base/grow.h"

void arrived_free(struct arrived *a)
{
    for (uint32_t node = 0; node < a->nodes; node++)
        intervals_free(&a->block[node]);
    free(a->block);
    *a = (struct arrived){0};
}

int arrived_add(struct arrived *a, uint32_t node, uint64_t begin, uint64_t end)
{
    while (a->nodes <= node) {
        if (GROW(a->block, a->nodes, a->room) != 0)
            return -1;
        a->block[a->nodes++] = (struct intervals){0};
    }
    struct intervals *block = &a->block[node];
    const size_t before = block->count;
    const int result = intervals_add(block, begin, end);
    a->spans = a->spans + block->count - before;
    return result;
}

void arrived_trim(struct arrived *a, uint32_t most)
{
    a->spans = 0;
    for (uint32_t node = 0; node < a->nodes; node++) {
        intervals_cut(&a->block[node], most);
        a->spans += a->block[node].count;
    }
}

const struct intervals *arrived_of(const struct arrived *a, uint32_t node)
{
    static const struct intervals none = {0};

    return node < a->nodes ? &a->block[node] : &none;
}

uint64_t arrived_end(const struct arrived *a, uint32_t node)
{
    const struct intervals *block = arrived_of(a, node);

    return block->count > 0 ? block->item[block->count - 1].end : 0;
}

void arrived_drop(struct arrived *a, uint32_t node)
{
    if (node >= a->nodes)
        return;
    a->spans -= a->block[node].count;
    intervals_free(&a->block[node]);
}
