/* The cables, from what each interface hears. */
#pragma once

#include "daemon/lib/cabling/cabling.h"

struct wiring {
    const struct cabling_input *input; /* in the order of names  */
    uint32_t interfaces;               /* of all hosts */
    uint32_t *first;         /* by host, and one more: the number of its first interface */
    struct cabling_end *end; /* by that number */
    uint32_t *cable_at;      /* by that number; CABLING_NONE: no cable is known */
    bool *shared; /* by that number: the interfaces of more than two hosts hear each other here */
    uint32_t *
        instead; /* by that number: the interface of the same host that has the cable, as both are functions of one
                        * port; CABLING_NONE: there is none */
    struct cabling_cable *cable; /* one-way cables have the state, all others are kept */
    uint32_t cables;
};

/* Interfaces that hear each other, directly or through others, are one segment. A segment of two is a cable, even if
 * both are of one host. A larger segment of two hosts is a cable as well, between ports that have several functions:
 * one interface of each host gets it. A segment of more hosts is a switch. Excluded interfaces count as if they heard
 * nobody, and nobody heard them. Returns 0, or -1 with *e and nothing to free. */
int wiring_make(struct wiring *w, const struct cabling_input *input, struct error *e);
void wiring_free(struct wiring *w);

static inline uint32_t wiring_number(const struct wiring *w, struct cabling_end end)
{
    return w->first[end.host] + end.interface;
}

static inline const struct cabling_interface *wiring_interface(const struct wiring *w,
                                                               uint32_t number)
{
    return &w->input->host[w->end[number].host].interface[w->end[number].interface];
}

/* Whether a cable of the network may be plugged in here. */
static inline bool wiring_usable(const struct wiring *w, uint32_t number)
{
    return !wiring_interface(w, number)->excluded && !w->shared[number] &&
           w->instead[number] == CABLING_NONE;
}

/* A multigraph of nodes: what is wanted, or what the cables make. */

struct network {
    uint32_t nodes;
    uint32_t links;      /* between different nodes */
    uint32_t *first;     /* by node, and one more: its neighbours in `neighbour` */
    uint32_t *neighbour; /* each once, in ascending order */
    uint32_t *degree;    /* by node: its links; two links to one neighbour count as two */
    uint8_t *count;      /* node * nodes + node: links between the two */
};

/* The network of a torus, or of the cables; with at least `nodes` nodes, of which the last may have no links. Loops
 * are left out. Return 0, or -1 with *e and nothing to free. */
int network_of_torus(struct network *n, const struct torus *t, uint32_t nodes, struct error *e);
int network_of_cables(struct network *n, const struct wiring *w, uint32_t nodes, struct error *e);
void network_free(struct network *n);

static inline uint8_t network_links(const struct network *n, uint32_t a, uint32_t b)
{
    return n->count[(size_t)a * n->nodes + b];
}

/* Whether the links connect all nodes that have any. */
bool network_connected(const struct network *n);
