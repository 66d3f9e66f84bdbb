/* One complete daemon: links, exchanges, folders, the control socket and the socket of programs
 * on one libuv loop. */
#pragma once

#include <uv.h>

#include "daemon/torusd/config.h"
#include "daemon/torusd/reload.h"

struct node;

/* Makes a node that listens, dials and serves while the loop runs. `config` must outlive the
 * node, which changes it when settings are read again. The caller calls node_stop() and node_free(). Returns NULL with *e and nothing left
 * open. */
struct node *node_start(uv_loop_t *loop, struct config *config, struct error *e);

/* Reads the settings again, off the loop: read() fills the fresh *config, which config_init() has filled, and returns 0,
 * or -1 with *e. Then those that can change while the node runs are changed, links stay up, and done() is called. If
 * anything cannot be read, the daemon logs that, and keeps all settings. While settings are being read, a further call
 * makes the node read them once more before done(). */
void node_reload(struct node *node, const struct reload_source *source);

/* Writes a line about the state, such as "node 3 of 4x4: 4 of 4 links, 2 exchanges", in at most `size` bytes. */
void node_describe(struct node *node, char *out, size_t size);

/* Closes everything; the loop ends by itself when all handles are closed. */
void node_stop(struct node *node);

/* Frees the node after the loop has ended. Returns how many buffers leaked (if not 0, that is a
 * bug). */
size_t node_free(struct node *node);
