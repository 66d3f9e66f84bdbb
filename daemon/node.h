/* One complete daemon: links, exchanges, folders, the control socket and the socket of programs
 * on one libuv loop. */
#ifndef TORUSD_NODE_H
#define TORUSD_NODE_H

#include <uv.h>

#include "daemon/config.h"

struct node;

/* Makes a node that listens, dials and serves while the loop runs. `config` must outlive the
 * node. The caller calls node_stop() and node_free(). Returns NULL with *e and nothing left
 * open. */
struct node *node_start(uv_loop_t *loop, const struct config *config, struct error *e);

/* Reads the cluster keys again. Links that are up stay. If the keys cannot be read, the daemon logs that, and
 * keeps its keys. */
void node_read_keys(struct node *node);

/* Writes a line about the state, such as "node 3 of 4x4: 4 of 4 links, 2 exchanges", in at most `size` bytes. */
void node_describe(struct node *node, char *out, size_t size);

/* Closes everything; the loop ends by itself when all handles are closed. */
void node_stop(struct node *node);

/* Frees the node after the loop has ended. Returns how many buffers leaked (if not 0, that is a
 * bug). */
size_t node_free(struct node *node);

#endif
