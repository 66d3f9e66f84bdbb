#include "daemon/lib/schedule/plan.h"

#include <stdlib.h>

int plan_compare_key(const void *key, const void *message)
{
    const struct plan_message *m = message;
    uint64_t x = *(const uint64_t *)key;
    uint64_t y = plan_key(m->step, m->port, m->hops, m->left);

    return x < y ? -1 : x > y;
}

void plan_free(struct plan *p)
{
    free(p->send);
    free(p->arrival);
    free(p->block);
    *p = (struct plan){0};
}

const struct plan_message *plan_arrival(const struct plan *p, uint32_t step, uint8_t port,
                                        uint16_t hops, uint16_t left)
{
    /* A step or port that does not fit in a key would be mistaken for another one. */
    if (step >= p->steps || port >= TORUS_MAX_PORTS)
        return NULL;
    uint64_t key = plan_key(step, port, hops, left);
    return bsearch(&key, p->arrival, p->arrivals, sizeof *p->arrival, plan_compare_key);
}

void plan_port_totals(const struct plan *p, const struct torus *t, unsigned port, uint64_t *blocks,
                      uint64_t *messages)
{
    *blocks = *messages = 0;
    for (const struct plan_message *m = p->send; m < p->send + p->sends; m++) {
        if (m->port == port) {
            *blocks += m->blocks;
            ++*messages;
        }
    }
    for (const struct plan_message *m = p->arrival; m < p->arrival + p->arrivals; m++)
        if (m->left > 0 && torus_port_opposite(t, m->port) == port)
            *blocks += m->blocks;
}
