#include "daemon/torusd/group/data/members.h"

#include <stdlib.h>

int members_init(struct members *m, uint32_t nodes, uint32_t rank, const bool *gone,
                 struct error *e)
{
    *m = (struct members){.count = nodes, .own = rank};
    if (gone == NULL)
        return 0;
    m->node = calloc(nodes, sizeof *m->node);
    m->member = calloc(nodes, sizeof *m->member);
    if (m->node == NULL || m->member == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a group");
    m->count = 0;
    for (uint32_t node = 0; node < nodes; node++) {
        m->member[node] = gone[node] ? TORUS_NO_NODE : m->count;
        if (!gone[node])
            m->node[m->count++] = node;
    }
    m->own = m->member[rank];
    return 0;
}

void members_free(struct members *m)
{
    free(m->node);
    free(m->member);
    *m = (struct members){0};
}
