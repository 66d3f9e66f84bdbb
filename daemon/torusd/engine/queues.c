#include "daemon/torusd/engine/queues.h"

#include <stdlib.h>
#include <string.h>

int queues_init(struct queues *q, unsigned ports, uint32_t levels, uint32_t items)
{
    size_t queues = (size_t)ports * levels;

    *q =
        (struct queues){.ports = ports, .levels = levels, .words = levels / 64 + 1, .items = items};
    q->ends = calloc(queues + 1, sizeof *q->ends);
    q->waiting = calloc((size_t)ports * q->words + 1, sizeof *q->waiting);
    q->next = calloc((size_t)items + 1, sizeof *q->next);
    if (q->ends == NULL || q->waiting == NULL || q->next == NULL) {
        queues_free(q);
        return -1;
    }
    queues_clear(q);
    return 0;
}

void queues_free(struct queues *q)
{
    free(q->ends);
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
