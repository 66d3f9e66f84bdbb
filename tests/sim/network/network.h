/* The links of a simulated torus (network/), as the simulator uses them. */
#ifndef TORUSD_TESTS_SIM_NETWORK_NETWORK_H
#define TORUSD_TESTS_SIM_NETWORK_NETWORK_H

#include <stdint.h>

#include "daemon/router/interface/io.h"
#include "tests/sim/sim.h"

struct node;

void network_open(struct sim *sim);
void network_free(struct sim *sim);
void network_io(struct node *node, struct router_io *io);
/* The node has been started: tells its router which cables have no carrier. */
void network_node_started(struct node *node);
void network_flush(struct node *node);
/* The node is about to die: its connections are reset, or its peers are not told. */
void network_node_dies(struct node *node, enum sim_death death);
/* Its machine answers again: what is sent on connections of before is answered with a reset. */
void network_node_back(struct node *node);
void network_node_frozen(struct node *node, uint64_t time);
void network_node_thawed(struct node *node);
/* All wires are as at the beginning. */
void network_heal(struct sim *sim);
/* Something has happened to the node that may cost it its links. */
void network_excuse_node(struct node *node);

#endif
