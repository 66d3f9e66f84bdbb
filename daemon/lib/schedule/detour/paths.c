/* The cheapest paths: Dijkstra with a heap. */
#include "daemon/lib/schedule/detour/internal.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

#define FAR UINT64_MAX

struct paths_entry {
    uint64_t distance;
    uint32_t node;
};

void paths_free(struct paths *w)
{
    free(w->neighbour);
    free(w->cost);
    free(w->distance);
    free(w->before);
    free(w->via);
    free(w->order);
    free(w->heap);
    *w = (struct paths){0};
}

int paths_init(struct paths *w, const struct damage *d, struct error *e)
{
    uint32_t nodes = d->torus.nodes;
    unsigned ports = torus_ports(&d->torus);

    *w = (struct paths){.nodes = nodes, .ports = ports, .channels = (size_t)nodes * ports};
    w->neighbour = calloc(w->channels, sizeof *w->neighbour);
    w->cost = calloc(w->channels, sizeof *w->cost);
    w->distance = calloc(nodes, sizeof *w->distance);
    w->before = calloc(nodes, sizeof *w->before);
    w->via = calloc(nodes, sizeof *w->via);
    w->order = calloc(nodes, sizeof *w->order);
    w->heap = calloc(w->channels + 1, sizeof *w->heap); /* a channel shortens a path once */
    if (w->neighbour == NULL || w->cost == NULL || w->distance == NULL || w->before == NULL ||
        w->via == NULL || w->order == NULL || w->heap == NULL) {
        paths_free(w);
        return error_set(e, ERROR_MEMORY, "out of memory for the paths between %u %s", nodes,
                         text_plural(nodes, "node", "nodes"));
    }
    for (uint32_t node = 0; node < nodes; node++)
        for (unsigned port = 0; port < ports; port++)
            w->neighbour[paths_channel(w, node, port)] =
                damage_has_link(d, node, port) ? torus_neighbour(&d->torus, node, port)
                                               : TORUS_NO_NODE;
    return 0;
}

static bool comes_first(const struct paths_entry *a, const struct paths_entry *b)
{
    return a->distance < b->distance || (a->distance == b->distance && a->node < b->node);
}

static void push(struct paths *w, struct paths_entry entry)
{
    uint32_t at = w->heaped++;

    while (at > 0 && comes_first(&entry, &w->heap[(at - 1) / 2])) {
        w->heap[at] = w->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    w->heap[at] = entry;
}

static struct paths_entry pop(struct paths *w)
{
    struct paths_entry first = w->heap[0], last = w->heap[--w->heaped];
    uint32_t at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= w->heaped)
            break;
        if (child + 1 < w->heaped && comes_first(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!comes_first(&w->heap[child], &last))
            break;
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = last;
    return first;
}

/* Shortens the paths to the neighbours of a node whose own path is final. */
static void spread(struct paths *w, struct paths_entry from, unsigned turn)
{
    for (unsigned i = 0; i < w->ports; i++) {
        unsigned port = (i + turn) % w->ports;
        size_t channel = paths_channel(w, from.node, port);
        uint32_t there = w->neighbour[channel];
        uint64_t distance = from.distance + w->cost[channel];
        if (there == TORUS_NO_NODE || distance >= w->distance[there])
            continue;
        w->distance[there] = distance;
        w->via[there] = (uint8_t)port;
        w->before[there] = from.node;
        push(w, (struct paths_entry){distance, there});
    }
}

void paths_find(struct paths *w, uint32_t source, unsigned turn)
{
    for (uint32_t node = 0; node < w->nodes; node++)
        w->distance[node] = FAR;
    w->distance[source] = 0;
    w->before[source] = TORUS_NO_NODE;
    w->reached = 0;
    w->heaped = 0;
    watch_tell(-1);
    push(w, (struct paths_entry){0, source});
    while (w->heaped > 0) {
        struct paths_entry nearest = pop(w);
        if (nearest.distance > w->distance[nearest.node])
            continue; /* a shorter path was found since */
        w->order[w->reached++] = nearest.node;
        spread(w, nearest, turn);
    }
}

uint32_t paths_trace(const struct paths *w, uint32_t destination, uint8_t *port)
{
    uint32_t length = 0;

    for (uint32_t at = destination; w->before[at] != TORUS_NO_NODE; at = w->before[at])
        length++;
    uint32_t i = length;
    for (uint32_t at = destination; w->before[at] != TORUS_NO_NODE; at = w->before[at])
        port[--i] = w->via[at];
    return length;
}

uint32_t paths_diameter(struct paths *w)
{
    uint64_t longest = 0;

    for (size_t i = 0; i < w->channels; i++)
        w->cost[i] = 1;
    for (uint32_t source = 0; source < w->nodes; source++) {
        paths_find(w, source, 0);
        uint64_t distance = w->distance[w->order[w->reached - 1]];
        if (distance > longest)
            longest = distance;
    }
    return (uint32_t)longest;
}
