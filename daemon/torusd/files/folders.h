/* Folders as sources and sinks of blocks, and the state folder: implements daemon/torusd/engine/output_store.h.
 * All accesses to a disk run in jobs (base/work.h), so that a slow disk never stops the links; only
 * folders_init() blocks. */
#pragma once

#include "daemon/torusd/files/record/folders_record.h"

/* Opens the state folder, removes what a crash left unfinished, and fills *storage for the core; *folders
 * must outlive *storage. Returns 0, or -1 with *e: the state folder cannot be used.
 *
 * After storage->close() jobs may still run, among them those of sources and sinks that were closed before
 * (their closed() is still called). The state folder is released after the last job. */
int folders_init(struct folders *folders, struct storage *storage, struct error *e);

/* Checks that these data roots may be used with the state folder; may be called on any thread. Returns 0, or -1 with
 * *e. */
int folders_check_roots(const struct folders *folders, const struct roots *roots, struct error *e);

/* Starts to write the bytes that have arrived for files. To be called whenever all input has been processed,
 * before the loop waits. Returns whether exchanges were told of an event, so that they may have more to
 * send. */
bool folders_flush(struct folders *folders);
