/* One daemon, put together: links, exchanges, folders, the control socket and that of programs on one
 * libuv loop. */
#ifndef TORUSD_NODE_H
#define TORUSD_NODE_H

#include <uv.h>

#include "daemon/config.h"

struct node;

/* Listens, dials and serves from when the loop runs. `config` must outlive the node. Returns NULL
 * with *e and nothing left open. */
struct node *node_start(uv_loop_t *loop, const struct config *config, struct error *e);

/* Reads the cluster keys again. Links that are up stay. If they cannot be read, this is logged and the
 * daemon goes on with those that it has. */
void node_read_keys(struct node *node);

/* Closes everything; the loop ends by itself when all handles are closed. */
void node_stop(struct node *node);

/* After the loop has ended. Returns how many buffers leaked (0, or it is a bug). */
size_t node_free(struct node *node);

#endif
