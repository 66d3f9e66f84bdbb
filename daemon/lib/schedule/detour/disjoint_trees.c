#include "daemon/lib/schedule/detour/disjoint_trees.h"

#include <stdlib.h>

#include "daemon/lib/schedule/detour/packing.h"
#include "daemon/lib/schedule/tree.h"
#include "proto/text.h"

static int no_memory(const struct torus *t, struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for the trees of %u %s", t->nodes,
                     text_plural(t->nodes, "node", "nodes"));
}

/* The node with the fewest links takes in the blocks of all others. */
static double bound_of_links(const struct damage *d)
{
    uint32_t present = 0, fewest = UINT32_MAX;

    for (uint32_t node = 0; node < d->torus.nodes; node++) {
        uint32_t links = 0;
        if (d->gone[node])
            continue;
        present++;
        for (unsigned port = 0; port < torus_ports(&d->torus); port++)
            links += damage_has_link(d, node, port);
        fewest = links < fewest ? links : fewest;
    }
    return present > 1 && fewest > 0 ? (present - 1.0) / fewest : 0;
}

int disjoint_trees_find(struct disjoint_trees *f, const struct damage *d, struct error *e)
{
    struct packing *p;

    *f = (struct disjoint_trees){.nodes = d->torus.nodes, .bound = bound_of_links(d)};
    if (f->nodes > PACKING_NODES_MOST)
        return 0;
    p = malloc(sizeof *p);
    if (p == NULL)
        return no_memory(&d->torus, e);
    packing_init(p, d);
    f->trees = p->trees;
    f->bound = p->bound;
    if (f->trees > 1)
        f->towards = malloc((size_t)f->nodes * f->trees * f->nodes);
    for (uint32_t source = 0; source < f->nodes && f->towards != NULL; source++) {
        uint8_t *towards = f->towards + (size_t)source * f->trees * f->nodes;
        for (size_t i = 0; i < (size_t)f->trees * f->nodes; i++)
            towards[i] = TREE_NONE;
        uint32_t hops = d->gone[source] ? 0 : packing_find(p, d, source, towards);
        f->longest = hops > f->longest ? hops : f->longest;
    }
    free(p);
    return f->trees <= 1 || f->towards != NULL ? 0 : no_memory(&d->torus, e);
}

void disjoint_trees_free(struct disjoint_trees *f)
{
    free(f->towards);
    *f = (struct disjoint_trees){0};
}

int trees_on_a_link(uint32_t *most, const struct torus *t, const uint8_t *towards, size_t trees,
                    struct error *e)
{
    unsigned ports = torus_ports(t);
    uint32_t *load = calloc((size_t)t->nodes * ports + 1, sizeof *load);

    *most = 0;
    if (load == NULL)
        return no_memory(t, e);
    for (size_t i = 0; i < trees * t->nodes; i++) {
        uint32_t node = (uint32_t)(i % t->nodes);
        if (towards[i] == TREE_NONE)
            continue;
        uint32_t up = torus_neighbour(t, node, towards[i]);
        /* A tree goes up one channel of a link, and down the other. */
        uint32_t *end[] = {&load[node * ports + towards[i]],
                           &load[up * ports + torus_port_opposite(t, towards[i])]};
        for (unsigned k = 0; k < 2; k++)
            if (++*end[k] > *most)
                *most = *end[k];
    }
    free(load);
    return 0;
}
