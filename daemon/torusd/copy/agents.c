#include "daemon/torusd/copy/copies_record.h"

struct agent *copies_find_agent(const struct copies *c, uint32_t asker, uint64_t id)
{
    struct agent *a = c->agents;

    while (a != NULL && (a->asker != asker || a->id != id))
        a = a->next;
    return a;
}

unsigned copies_count_agents(const struct copies *c)
{
    unsigned n = 0;

    for (const struct agent *a = c->agents; a != NULL; a = a->next)
        n++;
    return n;
}

struct agent *copies_add_agent(struct copies *c, const struct agent_setup *setup, struct error *e)
{
    struct agent *a = agent_new(setup, e);

    if (a == NULL)
        return NULL;
    a->next = c->agents;
    c->agents = a;
    return a;
}
