#include "daemon/lib/cabling/network.h"

#include <stdlib.h>

static int start(struct network *n, uint32_t nodes, struct error *e)
{
    *n = (struct network){.nodes = nodes};
    n->first = calloc((size_t)nodes + 1, sizeof *n->first);
    n->degree = calloc((size_t)nodes + 1, sizeof *n->degree);
    n->count = calloc((size_t)nodes * nodes + 1, sizeof *n->count);
    if (n->first != NULL && n->degree != NULL && n->count != NULL)
        return 0;
    network_free(n);
    return error_set(e, ERROR_MEMORY, "no memory for a network of %u nodes", nodes);
}

static void add(struct network *n, uint32_t a, uint32_t b)
{
    if (a == b || network_links(n, a, b) == UINT8_MAX)
        return;
    n->count[(size_t)a * n->nodes + b]++;
    n->count[(size_t)b * n->nodes + a]++;
    n->degree[a]++;
    n->degree[b]++;
    n->links++;
}

static int finish(struct network *n, struct error *e)
{
    uint32_t used = 0;

    n->neighbour = calloc(2 * (size_t)n->links + 1, sizeof *n->neighbour);
    if (n->neighbour == NULL) {
        network_free(n);
        return error_set(e, ERROR_MEMORY, "no memory for a network of %u nodes", n->nodes);
    }
    for (uint32_t a = 0; a < n->nodes; a++) {
        n->first[a] = used;
        for (uint32_t b = 0; b < n->nodes && n->degree[a] > 0; b++)
            if (network_links(n, a, b) > 0)
                n->neighbour[used++] = b;
    }
    n->first[n->nodes] = used;
    return 0;
}

int network_of_torus(struct network *n, const struct torus *t, uint32_t nodes, struct error *e)
{
    if (start(n, nodes > t->nodes ? nodes : t->nodes, e) != 0)
        return -1;
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (torus_port_dials(t, rank, port))
                add(n, rank, torus_neighbour(t, rank, port));
    return finish(n, e);
}

int network_of_cables(struct network *n, const struct wiring *w, uint32_t nodes, struct error *e)
{
    if (start(n, nodes > w->input->hosts ? nodes : w->input->hosts, e) != 0)
        return -1;
    for (uint32_t i = 0; i < w->cables; i++)
        add(n, w->cable[i].end[0].host, w->cable[i].end[1].host);
    return finish(n, e);
}

void network_free(struct network *n)
{
    free(n->first);
    free(n->neighbour);
    free(n->degree);
    free(n->count);
}

static uint32_t reach(const struct network *n, uint32_t from, uint32_t *queue, bool *seen)
{
    uint32_t reached = 0;

    queue[reached++] = from;
    seen[from] = true;
    for (uint32_t i = 0; i < reached; i++)
        for (uint32_t k = n->first[queue[i]]; k < n->first[queue[i] + 1]; k++)
            if (!seen[n->neighbour[k]]) {
                seen[n->neighbour[k]] = true;
                queue[reached++] = n->neighbour[k];
            }
    return reached;
}

bool network_connected(const struct network *n)
{
    uint32_t queue[CABLING_HOSTS_MOST + 1], linked = 0, from = 0;
    bool seen[CABLING_HOSTS_MOST + 1] = {false};

    for (uint32_t a = n->nodes; a-- > 0;)
        if (n->degree[a] > 0) {
            linked++;
            from = a;
        }
    return linked == 0 || reach(n, from, queue, seen) == linked;
}
