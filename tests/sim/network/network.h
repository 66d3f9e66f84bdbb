/* The links of a simulated torus (network/), as the simulator uses them. */
#pragma once

#include <stdint.h>

#include "daemon/torusd/router/io.h"
#include "tests/sim/sim.h"

struct node;

void network_open(struct sim *sim);
void network_free(struct sim *sim);
void network_io(struct node *node, struct router_io *io);
/* Call this when a node has started: tells its router which cables have no carrier. */
void network_node_started(struct node *node);
void network_flush(struct node *node);
/* Call this when a node is about to die: resets its connections, or leaves its peers untold. */
void network_node_dies(struct node *node, enum sim_death death);
/* Call this when the node's machine answers again: it answers packets of old connections with a reset. */
void network_node_back(struct node *node);
void network_node_frozen(struct node *node, uint64_t time);
void network_node_thawed(struct node *node);
/* Restores all wires to their initial state. */
void network_heal(struct sim *sim);
/* Call this after a fault that may cost the node its links. */
void network_excuse_node(struct node *node);
