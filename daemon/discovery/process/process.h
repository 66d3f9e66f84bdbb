/* A discovery process: discovery on the interfaces of this host, the discovery socket, and the command for
 * setups, on one loop. */
#ifndef TORUSD_DISCOVERY_PROCESS_PROCESS_H
#define TORUSD_DISCOVERY_PROCESS_PROCESS_H

#include <uv.h>

#include "daemon/discovery/process/settings.h"

struct discovery_process;

/* Starts discovery; the options and the state must outlive it. Returns NULL with *e and nothing left open. */
struct discovery_process *discovery_process_start(uv_loop_t *loop,
                                                  const struct discover_options *options,
                                                  struct host_state *state, struct error *e);

/* Reads the settings and keys again. */
void discovery_process_read_settings(struct discovery_process *p);

/* Closes everything, and frees *p when the loop has closed the handles. */
void discovery_process_stop(struct discovery_process *p);

#endif
