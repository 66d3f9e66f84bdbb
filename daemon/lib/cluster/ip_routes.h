/* Routes over the cables of a torus, some of which may be broken or slower than others: the ports through which each
 * node forwards packets to each other node. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/schedule/damage.h"

#define IP_ROUTES_MOST_NODES 4096
#define IP_ROUTES_NO_PORT UINT8_MAX

struct ip_routes {
    struct torus torus;
    struct damage damage; /* cables not to use, and rates */
    uint8_t *port;        /* by rank and destination: the port, or IP_ROUTES_NO_PORT */
    uint8_t *
        weight; /* by rank, destination and port: route_weights.h; NULL: all cables have the same rate */
};

/* Allocates the routes of a torus without the cables in the list `without` (see damage_parse(); NULL: none). Returns
 * 0 with *r, which the caller frees with ip_routes_free(), or -1 with *e: too many nodes, an invalid list, or memory
 * is short. */
int ip_routes_init(struct ip_routes *r, const struct torus *t, const char *without,
                   struct error *e);
void ip_routes_free(struct ip_routes *r);

/* Finds the routes, each as short as the broken cables allow, or with weights if cables have different rates. On a
 * torus without broken cables, routes go through the dimensions in order. Between opposite nodes of a ring there are
 * two ways; nodes with even and odd coordinates take different ones. Returns 0, or -1 with *e if memory is short. */
int ip_routes_find(struct ip_routes *r, struct error *e);

/* Returns the port through which node `rank` forwards packets to `destination`, or IP_ROUTES_NO_PORT if `destination`
 * cannot be reached or is the node itself; of several ports, the one with the largest weight. Call ip_routes_find()
 * first. */
unsigned ip_routes_port(const struct ip_routes *r, uint32_t rank, uint32_t destination);

/* Returns the weight of a port of a route: 0: it is not used. If the route has only one port, it has the weight 1. */
unsigned ip_routes_weight(const struct ip_routes *r, uint32_t rank, uint32_t destination,
                          unsigned port);

/* Returns the one of these ports (bits; not 0) by which the connections of a pair of nodes leave node `rank`, if all of
 * them lead to `to` on paths of the same length: that of the first dimension, and between opposite nodes of a ring the
 * direction that ip_routes_find() describes. So the connections of all pairs that are equally far apart share no cable
 * unless they must. Among the ports of a dimension that is not a ring or line, the choice depends on both nodes. */
unsigned ip_routes_choose(const struct torus *t, uint32_t rank, uint32_t to, uint32_t ports);
