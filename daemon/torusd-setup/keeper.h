/* The part of discovery that runs as root. It keeps the keys of the host, opens setups, runs the command that applies
 * them, and sets up the interfaces of a new host. Its only input are messages of the discovery process and of root at a
 * Unix socket. */
#pragma once

#include <uv.h>

#include "daemon/torusd-setup/settings.h"

struct keeper;

/* Starts; the options and the state must outlive it. Returns NULL with *e and nothing left open. */
struct keeper *keeper_start(uv_loop_t *loop, const struct setup_options *options,
                            struct host_state *state, struct error *e);

/* Reads the settings and keys again, and tells the discovery process. */
void keeper_read_settings(struct keeper *k);

/* Closes everything, and frees *k when the loop has closed the handles. A command that runs goes on. */
void keeper_stop(struct keeper *k);
