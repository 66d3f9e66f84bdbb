/* Puts the outputs of ended exchanges in their place, or removes them. `context` is the folders. */
#pragma once

#include <stdbool.h>

#include "daemon/lib/base/work.h"
#include "daemon/torusd/engine/output_store.h"

/* As storage.resolve(). */
void outcomes_resolve(void *context, const char *id, bool committed, storage_done_fn *done,
                      void *argument);

/* As storage.each_in_doubt(). */
int outcomes_each_in_doubt(void *context, void (*each)(void *argument, const char *id),
                           void *argument, struct error *e);

/* At the start: removes an output that was never finished, and so was not committed. */
void outcomes_clean_up(void *context, const char *id);

/* The job of outcomes_resolve() (tasks.h). */
void outcomes_run(struct work *work);
