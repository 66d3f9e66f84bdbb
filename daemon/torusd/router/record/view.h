/* Read access to a router. All pointers are borrowed, and valid while the router exists. Times are in
 * nanoseconds. */
#pragma once

#include "daemon/lib/base/slab.h"
#include "daemon/torusd/router/topology/topology.h"

struct outgoing_pool;
struct router;

/* The pool of the frames for router_relay() and handler.next(). */
struct outgoing_pool *router_outgoing(struct router *r);

const struct topology *router_topology(const struct router *r);
const struct torus *router_torus(const struct router *r);
uint32_t router_rank(const struct router *r);
uint64_t router_boot(const struct router *r);
/* The minor version of the peer protocol that this node speaks. */
uint32_t router_minor(const struct router *r);
uint64_t router_now(const struct router *r);
void router_random(struct router *r, void *buffer, size_t size);
struct slab_pool *router_pool(struct router *r);
uint64_t router_heartbeat(const struct router *r); /* interval */
uint64_t router_silence(const struct router *r);   /* limit */

/* Returns the least minor version of the peer protocol that a node speaks, of all nodes that can be reached. Code
 * that sends what a minor version has added asks this first. All nodes learn within moments that it has changed;
 * until then, a node with an older version may receive what it does not know, and ignores it. */
uint32_t router_least_minor(const struct router *r);

/* Returns the id of a key that this node accepts (KEY_ID_SIZE bytes), the preferred one first; NULL: no more. */
const uint8_t *router_key_id(const struct router *r, unsigned index);

/* Whether a link is up, so that heartbeats are sent. */
bool router_beats(const struct router *r);
