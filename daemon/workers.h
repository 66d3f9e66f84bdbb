/* Work off the loop (base/work.h) in libuv's thread pool. */
#ifndef TORUSD_WORKERS_H
#define TORUSD_WORKERS_H

#include <uv.h>

#include "daemon/base/work.h"

/* Fills *workers. The loop must run until all work that was submitted is done. */
void workers_on_loop(uv_loop_t *loop, struct workers *workers);

#endif
