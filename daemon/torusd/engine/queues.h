/* Queues of items that wait to leave, by port and urgency. Items are numbers; each is in at most one queue.
 * The most urgent item leaves first; equally urgent items leave in the order in which they were added. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define QUEUES_NONE UINT32_MAX

struct queue_ends {
    uint32_t first, last; /* items */
};

struct queues {
    unsigned ports;
    uint32_t levels, words, items;
    struct queue_ends *ends; /* by port * levels + urgency; undefined for an empty queue */
    uint64_t *waiting;       /* bits by port * words, of queues that are not empty */
    uint32_t *next;          /* by item; the item itself: it is not in a queue */
};

/* Makes empty queues for urgencies below `levels` and items below `items`. Returns 0, or -1 if there is no
 * memory; then there is nothing to free. */
int queues_init(struct queues *q, unsigned ports, uint32_t levels, uint32_t items);
/* Frees the memory of the queues. */
void queues_free(struct queues *q);
/* Removes all items from the queues. */
void queues_clear(struct queues *q);

/* Whether the item is in a queue. */
static inline bool queues_has(const struct queues *q, uint32_t item)
{
    return q->next[item] != item;
}

/* Adds an item, unless it is in a queue. Returns whether it was added. */
static inline bool queues_add(struct queues *q, unsigned port, uint32_t urgency, uint32_t item)
{
    struct queue_ends *ends = &q->ends[port * q->levels + urgency];
    uint64_t *word = &q->waiting[port * q->words + urgency / 64];
    uint64_t bit = UINT64_C(1) << urgency % 64;

    if (queues_has(q, item))
        return false;
    if ((*word & bit) == 0)
        ends->first = item;
    else
        q->next[ends->last] = item;
    ends->last = item;
    q->next[item] = QUEUES_NONE;
    *word |= bit;
    return true;
}

/* Returns the next item to leave by a port; QUEUES_NONE if there is none. */
static inline uint32_t queues_peek(const struct queues *q, unsigned port)
{
    for (uint32_t word = q->words; word-- > 0;) {
        uint64_t bits = q->waiting[port * q->words + word];
        if (bits != 0) {
            uint32_t urgency = 64 * word + 63 - (uint32_t)__builtin_clzll(bits);
            return q->ends[port * q->levels + urgency].first;
        }
    }
    return QUEUES_NONE;
}

/* Removes the first item of this urgency. There must be one. */
static inline void queues_take(struct queues *q, unsigned port, uint32_t urgency)
{
    struct queue_ends *ends = &q->ends[port * q->levels + urgency];
    uint32_t item = ends->first;

    ends->first = q->next[item];
    if (ends->first == QUEUES_NONE)
        q->waiting[port * q->words + urgency / 64] &= ~(UINT64_C(1) << urgency % 64);
    q->next[item] = item;
}
