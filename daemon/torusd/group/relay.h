/* Groups of some nodes: the network of their members, and what each node passes on in it. Frames between two members name
 * their channel (GroupCall.channel), by which the nodes on its path know through which ports they come and leave. */
#pragma once

#include "daemon/lib/schedule/detour/overlay.h"
#include "daemon/torusd/group/state.h"
#include "daemon/torusd/router/outgoing.h"

struct relay {
    struct overlay overlay;
    struct overlay_hop *hop; /* by channel: how it crosses this node */
    struct outgoing_queue
        queue[TORUS_MAX_PORTS]; /* frames that this node passes on, by the port where they leave */
    uint64_t bytes;             /* in these queues */
    struct slab_writer kept;
};

/* Finds the network of s->is_member, without what is down in s->damage, instead of the one before. Returns 0, or -1 with *e:
 * members cannot reach each other (ERROR_LINK), no memory. */
int relay_open(struct session *s, struct error *e);
/* Frees s->relay, which may be NULL. */
void relay_close(struct session *s);

/* Takes a frame or comparison that has arrived, if other nodes must get it: then sets *passed_on, and it leaves later. It
 * stays with the caller if there is no relay, or its channel ends here. Without room for it, the session fails. Returns 0.
 * Returns -1 with *e if no such channel comes through this port. */
int relay_pass_frame(struct session *s, unsigned port, uint32_t channel,
                     const struct peer_message *message, const struct extents *body,
                     bool *passed_on, struct error *e);
int relay_pass_compare(struct session *s, unsigned port, const struct peer_group_compare *message,
                       bool *passed_on, struct error *e);
/* Returns the next frame to pass on through this port, or NULL. */
struct outgoing *relay_next(struct session *s, unsigned port);
