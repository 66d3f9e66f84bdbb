#include "daemon/engine/queues.h"

#include <stdlib.h>
#include <string.h>

int queues_init(struct queues *q, unsigned ports, uint32_t levels, uint32_t items)
{
    size_t queues = (size_t)ports * levels;

    *q =
        (struct queues){.ports = ports, .levels = levels, .words = levels / 64 + 1, .items = items};
    q->first = calloc(queues + 1, sizeof *q->first);
    q->last = calloc(queues + 1, sizeof *q->last);
    q->waiting = calloc((size_t)ports * q->words + 1, sizeof *q->waiting);
    q->next = calloc((size_t)items + 1, sizeof *q->next);
    if (q->first == NULL || q->last == NULL || q->waiting == NULL || q->next == NULL) {
        queues_free(q);
        return -1;
    }
    queues_clear(q);
    return 0;
}

void queues_free(struct queues *q)
{
    free(q->first);
    free(q->last);
    free(q->waiting);
    free(q->next);
    *q = (struct queues){0};
}

void queues_clear(struct queues *q)
{
    for (uint32_t i = 0; i < q->items; i++)
        q->next[i] = i;
    memset(q->waiting, 0, (size_t)q->ports * q->words * sizeof *q->waiting);
}

bool queues_add(struct queues *q, unsigned port, uint32_t urgency, uint32_t item)
{
    uint32_t at = port * q->levels + urgency;
    uint64_t *word = &q->waiting[port * q->words + urgency / 64];
    uint64_t bit = UINT64_C(1) << urgency % 64;

    if (q->next[item] != item)
        return false;
    if ((*word & bit) == 0)
        q->first[at] = item;
    else
        q->next[q->last[at]] = item;
    q->last[at] = item;
    q->next[item] = QUEUES_NONE;
    *word |= bit;
    return true;
}

/* The most urgent queue of a port that is not empty; QUEUES_NONE. */
static uint32_t most_urgent(const struct queues *q, unsigned port)
{
    for (uint32_t word = q->words; word-- > 0;) {
        uint64_t bits = q->waiting[port * q->words + word];
        if (bits != 0)
            return 64 * word + 63 - (uint32_t)__builtin_clzll(bits);
    }
    return QUEUES_NONE;
}

uint32_t queues_peek(const struct queues *q, unsigned port)
{
    uint32_t urgency = most_urgent(q, port);

    return urgency != QUEUES_NONE ? q->first[port * q->levels + urgency] : QUEUES_NONE;
}

void queues_take(struct queues *q, unsigned port)
{
    uint32_t urgency = most_urgent(q, port);
    uint32_t at = port * q->levels + urgency;
    uint32_t item = q->first[at];

    q->first[at] = q->next[item];
    if (q->first[at] == QUEUES_NONE)
        q->waiting[port * q->words + urgency / 64] &= ~(UINT64_C(1) << urgency % 64);
    q->next[item] = item;
}
