/* What waits to leave, by port and urgency: items are numbers, each in one queue at most. The most
 * urgent leaves first, and of those that are as urgent the one that has waited longest. */
#ifndef TORUSD_ENGINE_QUEUES_H
#define TORUSD_ENGINE_QUEUES_H

#include <stdbool.h>
#include <stdint.h>

#define QUEUES_NONE UINT32_MAX

struct queues {
    unsigned ports;
    uint32_t levels, words, items;
    uint32_t *first, *last; /* item, by port * levels + urgency */
    uint64_t *waiting;      /* bits by port * words, of queues that are not empty */
    uint32_t *next;         /* by item; the item itself: it is not in a queue */
};

/* Empty queues for urgencies below `levels` and items below `items`. Returns 0, or -1 if there is
 * no memory and nothing to free. */
int queues_init(struct queues *q, unsigned ports, uint32_t levels, uint32_t items);
void queues_free(struct queues *q);
void queues_clear(struct queues *q);

/* Nothing happens if it waits already. Returns whether it did not. */
bool queues_add(struct queues *q, unsigned port, uint32_t urgency, uint32_t item);

/* The next to leave by a port; QUEUES_NONE if there is none. */
uint32_t queues_peek(const struct queues *q, unsigned port);
/* Takes that one out. */
void queues_take(struct queues *q, unsigned port);

#endif
