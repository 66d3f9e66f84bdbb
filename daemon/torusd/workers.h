/* Work off the loop (base/work.h) in libuv's thread pool. */
#pragma once

#include <uv.h>

#include "daemon/lib/base/work.h"
#include "proto/error.h"

/* Fills *workers, and starts the threads. The loop must run until all submitted work is done.
 * Returns 0, or -1 with *e: no thread could be started. */
int workers_on_loop(uv_loop_t *loop, struct workers *workers, struct error *e);
