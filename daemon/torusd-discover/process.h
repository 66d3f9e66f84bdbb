/* A discovery process: discovery on the interfaces of this host, the discovery socket, and the connection to
 * torusd-setup, on one loop. */
#pragma once

#include <uv.h>

#include "daemon/torusd-discover/options.h"

struct discovery_process;

/* Starts discovery; with torusd-setup, as soon as that answers. The options must outlive it. failed() says that it
 * cannot go on, after it has logged why; it may call discovery_process_stop(). Returns NULL with *e and nothing left
 * open. */
struct discovery_process *discovery_process_start(uv_loop_t *loop,
                                                  const struct discover_options *options,
                                                  void (*failed)(void *context), void *context,
                                                  struct error *e);

/* Closes everything, and frees *p when the loop has closed the handles. */
void discovery_process_stop(struct discovery_process *p);
