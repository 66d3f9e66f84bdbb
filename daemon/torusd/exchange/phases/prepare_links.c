/* The links and nodes that an attempt avoids, as lists in the root's prepare. */
#include "daemon/torusd/exchange/phases/prepare_links.h"

#include <stdlib.h>

#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/exchange/record/avoided.h"

void prepare_links_free(struct peer_prepare *prepare)
{
    free((uint32_t *)(uintptr_t)prepare->without); /* allocated by prepare_links_pack() */
    free((uint32_t *)(uintptr_t)prepare->missing);
}

int prepare_links_pack(const struct attempt *x, struct peer_prepare *prepare)
{
    const struct torus *t = torus_of(x);
    uint32_t *without, *missing;

    if (x->avoided == NULL)
        return 0;
    const struct damage *d = &x->avoided->damage;
    prepare->without = without = calloc((size_t)t->nodes * torus_ports(t), sizeof *without);
    prepare->missing = missing = calloc(t->nodes, sizeof *missing);
    if (without == NULL || missing == NULL) {
        prepare_links_free(prepare);
        return -1;
    }
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        if (d->gone[rank])
            missing[prepare->n_missing++] = rank;
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (torus_port_dials(t, rank, port) && avoided_joins_members(d, rank, port) &&
                (d->dead[rank] & 1u << port) != 0)
                without[prepare->n_without++] = rank * torus_ports(t) + port;
    }
    return 0;
}

static int unpack_missing(const struct peer_prepare *prepare, struct damage *d, struct error *e)
{
    for (size_t i = 0; i < prepare->n_missing; i++) {
        uint32_t rank = prepare->missing[i];
        if (rank >= d->torus.nodes || rank == prepare->root ||
            (i > 0 && rank <= prepare->missing[i - 1]))
            return error_set(e, ERROR_PROTOCOL,
                             "prepare leaves out node %u, which does not exist, is the root, or is "
                             "out of order in the list",
                             rank);
        damage_add_node(d, rank);
    }
    return 0;
}

static int unpack_links(const struct peer_prepare *prepare, struct damage *d, struct error *e)
{
    const struct torus *t = &d->torus;

    for (size_t i = 0; i < prepare->n_without; i++) {
        uint32_t rank = prepare->without[i] / torus_ports(t);
        unsigned port = prepare->without[i] % torus_ports(t);
        if (rank >= t->nodes || !torus_port_dials(t, rank, port) ||
            !avoided_joins_members(d, rank, port) ||
            (i > 0 && prepare->without[i] <= prepare->without[i - 1]))
            return error_set(e, ERROR_PROTOCOL,
                             "prepare avoids link %u, which does not exist, belongs to a node that "
                             "is left out, or is out of order in the list",
                             prepare->without[i]);
        damage_add_link(d, rank, port);
    }
    return 0;
}

int prepare_links_unpack(const struct torus *t, const struct peer_prepare *prepare,
                         struct damage *d, struct error *e)
{
    if (damage_init(d, t, e) != 0)
        return -1;
    if (unpack_missing(prepare, d, e) == 0 && unpack_links(prepare, d, e) == 0)
        return 0;
    damage_free(d);
    return -1;
}
