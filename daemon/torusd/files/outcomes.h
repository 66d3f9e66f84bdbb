/* The state folder and this node's outputs, as output_store.h has them for the core: decisions to commit, outcomes of outputs,
 * outputs that could not be removed, the calibration. What touches the disk runs in tasks: jobs without an owner. `context` is the folders. */
#pragma once

#include <stdbool.h>

#include "daemon/lib/base/work.h"
#include "daemon/torusd/engine/output_store.h"
#include "daemon/torusd/files/folders.h"
#include "daemon/torusd/files/jobs.h"
#include "daemon/torusd/planning/calibration.h"
#include "proto/error.h"

/* Makes the reserve of tasks: even without memory, a decision must be recorded, or refused. Returns 0, or -1 if there is no memory. */
int tasks_init(struct folders *folders);

/* Frees the reserve of tasks. */
void tasks_free(struct folders *folders);

/* --- the calibration: a file of the state folder with lines of text, each with a name and a number --- */

/* Reads and checks the file. Returns 1 with *c, 0 if there is none, or -1 with *e: it is damaged, or cannot be read. */
int calibration_file_read(const struct journal *j, struct calibration *c, struct error *e);

/* Replaces the file: a crash leaves the old or the new calibration. Returns 0, or -1 with *e. */
int calibration_file_write(const struct journal *j, const struct calibration *c, struct error *e);

/* As storage.store_calibration(). Calibrations are written one after the other, so that the last one
 * remains. */
void calibrations_store(void *context, const struct calibration *c);

/* As storage.load_calibration(). */
int calibrations_load(void *context, struct calibration *c, struct error *e);

/* --- decisions to commit --- */

/* As storage.record_commit(). */
void commits_record(void *context, const char *id, storage_done_fn *done, void *argument);

/* As storage.forget_commit(). */
void commits_forget(void *context, const char *id);

/* As storage.each_committed(). */
int commits_each(void *context, void (*each)(void *argument, const char *id), void *argument,
                 struct error *e);

/* --- outcomes: the outputs of ended exchanges are put in place, or removed --- */

/* As storage.resolve(). */
void outcomes_resolve(void *context, const char *id, bool committed, storage_done_fn *done,
                      void *argument);

/* As storage.each_in_doubt(). */
int outcomes_each_in_doubt(void *context, void (*each)(void *argument, const char *id),
                           void *argument, struct error *e);

/* At the start: removes an output that was never finished, and so was not committed. */
void outcomes_clean_up(void *context, const char *id);

/* --- outputs that could not be removed completely, for instance for lack of descriptors. Whenever a sink has been closed,
 * the removal is tried again --- */

/* Adds an exchange whose output could not be removed. */
void unremoved_add(struct folders *folders, const char *id);

/* To be called when an output has been closed: tries again to remove the outputs that no longer have a
 * sink. */
void unremoved_retry(struct folders *folders);

/* Frees the list; the next start of the daemon finds these outputs. */
void unremoved_free(struct folders *folders);
