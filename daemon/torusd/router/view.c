#include "daemon/torusd/router/router.h"

#include "daemon/torusd/router/internal.h"

struct outgoing_pool *router_outgoing(struct router *r)
{
    return &r->outgoing;
}

const struct topology *router_topology(const struct router *r)
{
    return &r->topology;
}

const struct torus *router_torus(const struct router *r)
{
    return r->torus;
}

uint32_t router_rank(const struct router *r)
{
    return r->rank;
}

uint64_t router_boot(const struct router *r)
{
    return r->boot;
}

uint32_t router_minor(const struct router *r)
{
    return r->topology.entry[r->rank].minor;
}

uint32_t router_least_minor(const struct router *r)
{
    uint32_t least = topology_least_minor(&r->topology);

    /* The neighbour at a link that has just come up may not have stated its links yet. */
    for (unsigned i = 0; i < torus_ports(r->torus); i++)
        if (r->port[i].link != NULL && r->port[i].link->minor < least)
            least = r->port[i].link->minor;
    return least;
}

uint64_t router_now(const struct router *r)
{
    return r->io.now(r->io.context);
}

void router_random(struct router *r, void *buffer, size_t size)
{
    r->io.random(r->io.context, buffer, size);
}

struct slab_pool *router_pool(struct router *r)
{
    return r->pool;
}

bool router_beats(const struct router *r)
{
    for (unsigned i = 0; i < torus_ports(r->torus); i++)
        if (r->port[i].link != NULL)
            return true;
    return false;
}

uint64_t router_heartbeat(const struct router *r)
{
    return r->heartbeat;
}

uint64_t router_silence(const struct router *r)
{
    return r->silence;
}

const uint8_t *router_key_id(const struct router *r, unsigned index)
{
    return index < r->secrets.count ? r->secrets.key[index].id : NULL;
}
