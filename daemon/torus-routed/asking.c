#include "daemon/torus-routed/asking.h"

void asking_begin(struct asking *a, const struct installer *installer)
{
    const struct host_addresses *hosts = installer->hosts;

    for (unsigned family = 0; family < installer->families; family++) {
        struct kernel_network network = {.family = 0};
        for (uint32_t i = 0; i < hosts->count; i++)
            kernel_network_add(&network, hosts->host[i].ip[family].family,
                               &hosts->host[i].ip[family].v6);
        kernel_network_write(&network, a->network[family], sizeof a->network[family]);
    }
    a->installer = installer;
    a->diverted = 0;
    a->works = kernel_routes_open(&a->kernel) == 0;
}

void asking_end(struct asking *a)
{
    kernel_routes_close(&a->kernel);
}

bool asking_diverted(struct asking *a, uint32_t to, struct kernel_answer *answer)
{
    const struct installer *i = a->installer;
    const struct host_entry *self = &i->hosts->host[i->planner->self], *host = &i->hosts->host[to];

    for (unsigned family = 0; a->works && family < i->families; family++) {
        const struct installed *installed = &i->installed[family][to];
        if (!installed->known || installed->kind != NETLINK_WAYS ||
            kernel_route_ask(&a->kernel, host->ip[family].family, &host->ip[family].v6,
                             &self->ip[family].v6, a->network[family], answer) != 0 ||
            answer->ours)
            continue;
        if (a->diverted++ == 0)
            a->first = *answer;
        return true;
    }
    return false;
}
