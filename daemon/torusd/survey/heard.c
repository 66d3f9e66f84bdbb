#include "daemon/torusd/survey/heard.h"

#include <stdlib.h>

#include "daemon/lib/base/limits.h"
#include "proto/elapsed.h"

/* What a query costs: the answers about hosts are larger, and take system calls. */
static unsigned cost_of(enum survey_kind kind)
{
    return kind == SURVEY_STATE ? 1 : kind == SURVEY_TRACE ? 3 : 4;
}

int heard_init(struct heard *h, unsigned ports)
{
    *h = (struct heard){.ports = ports};
    for (unsigned port = 0; port < ports; port++)
        h->room[port] = HEARD_BURST;
    h->query = calloc((size_t)ports * HEARD_KEPT, sizeof *h->query);
    return h->query != NULL || ports == 0 ? 0 : -1;
}

void heard_free(struct heard *h)
{
    free(h->query);
    h->query = NULL;
}

struct heard_query *heard_find(struct heard *h, uint32_t asker, uint64_t id)
{
    for (unsigned i = 0; i < h->ports * HEARD_KEPT; i++)
        if (h->query[i].at != 0 && h->query[i].id == id && h->query[i].asker == asker)
            return &h->query[i];
    return NULL;
}

/* Whether the asker has asked too often in the last second. */
static bool asks_too_often(const struct heard *h, const struct peer_survey_query *query,
                           uint64_t now)
{
    unsigned cost = cost_of((enum survey_kind)query->kind);

    for (unsigned i = 0; i < h->ports * HEARD_KEPT; i++)
        if (h->query[i].at != 0 && h->query[i].asker == query->asker &&
            elapsed(h->query[i].at, now) < 1 * SECONDS)
            cost += cost_of(h->query[i].kind);
    return cost > HEARD_ASKER;
}

struct heard_query *heard_add(struct heard *h, unsigned port, const struct peer_survey_query *query,
                              uint64_t now)
{
    const double cost = cost_of((enum survey_kind)query->kind);
    struct heard_query *heard = &h->query[port * HEARD_KEPT + h->next[port]];

    h->room[port] += (double)elapsed(h->at[port], now) / (double)SECONDS * HEARD_RATE;
    if (h->room[port] > HEARD_BURST)
        h->room[port] = HEARD_BURST;
    h->at[port] = now;
    if (h->room[port] < cost || asks_too_often(h, query, now))
        return NULL;
    h->room[port] -= cost;
    h->next[port] = (h->next[port] + 1) % HEARD_KEPT;
    *heard = (struct heard_query){.id = query->id,
                                  .at = now > 0 ? now : 1,
                                  .asker = query->asker,
                                  .port = port,
                                  .kind = (enum survey_kind)query->kind};
    return heard;
}
