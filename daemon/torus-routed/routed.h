/* torus-routed put together: link states in, routes of the kernel out. */
#pragma once

#include <uv.h>

#include "daemon/torus-routed/options.h"
#include "proto/error.h"

struct routed;

/* Starts. Takes over what a former process has left. Returns NULL with *e. */
struct routed *routed_start(uv_loop_t *loop, const struct routed_options *options, struct error *e);

/* Reads the file of addresses again, and keeps the routes that are still right. If the file is wrong, or has not as many
 * hosts as the torus, everything stays as it is. */
void routed_reload(struct routed *r);

/* Tells all nodes that this host forwards no more, waits until they avoid it, removes everything that was set, and closes
 * all handles. After the loop has ended, the caller calls routed_stopped_well() and routed_free(). */
void routed_stop(struct routed *r);
/* Whether everything was removed. */
bool routed_stopped_well(const struct routed *r);
void routed_free(struct routed *r);

/* Removes everything that a former process has left. Returns 0, or -1 with *e. */
int routed_clean_up(const struct routed_options *options, struct error *e);

/* Writes one line about the state. */
void routed_describe(const struct routed *r, char *text, size_t size);
