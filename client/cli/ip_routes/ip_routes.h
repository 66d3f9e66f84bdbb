/* Shortest-path routes over the cables of a torus, some of which may be broken: by which port each
 * node sends on what is for each other node. */
#ifndef TORUSD_CLI_IP_ROUTES_H
#define TORUSD_CLI_IP_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/schedule/damage.h"

#define IP_ROUTES_MOST_NODES 4096
#define IP_ROUTES_NO_PORT UINT8_MAX

struct ip_routes {
    struct torus torus;
    struct damage damage; /* cables not to use */
    uint8_t *port;        /* by rank and destination: the port, or IP_ROUTES_NO_PORT */
};

/* Makes room for the routes of a torus without the cables in the list (damage_parse; NULL: with all).
 * Returns 0, or -1 with *e and nothing to free: there are too many nodes, the list is wrong, or there
 * is no memory. */
int ip_routes_init(struct ip_routes *r, const struct torus *t, const char *without,
                   struct error *e);
void ip_routes_free(struct ip_routes *r);

/* Finds the routes. Each is as short as the cables that work allow. On a torus without broken cables
 * they go through one dimension after the other, the first one first; of the two ways between
 * opposite nodes of a ring, nodes with even and with odd coordinates take different ones. Returns 0,
 * or -1 with *e if there is no memory. */
int ip_routes_find(struct ip_routes *r, struct error *e);

/* The port by which `rank` sends on what is for `destination`: IP_ROUTES_NO_PORT if that cannot be
 * reached, or is the node itself. Call ip_routes_find() first. */
unsigned ip_routes_port(const struct ip_routes *r, uint32_t rank, uint32_t destination);

#endif
