/* The decisions to commit in the state folder, as in output_store.h; `context` is the folders. */
#pragma once

#include "daemon/torusd/engine/output_store.h"

/* As storage.record_commit(). */
void commits_record(void *context, const char *id, storage_done_fn *done, void *argument);

/* As storage.forget_commit(). */
void commits_forget(void *context, const char *id);

/* As storage.each_committed(). */
int commits_each(void *context, void (*each)(void *argument, const char *id), void *argument,
                 struct error *e);
