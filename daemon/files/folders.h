/* Folders as sources and sinks of blocks, and the state folder: implements
 * daemon/engine/output_store.h. Whatever touches a disk runs in jobs (base/work.h), so that no disk
 * ever stops the links; only folders_init() blocks. */
#ifndef TORUSD_FILES_FOLDERS_H
#define TORUSD_FILES_FOLDERS_H

#include "daemon/files/record/folders_record.h"

/* Opens the state folder, removes what a crash left unfinished, and fills *storage for the core;
 * *folders must outlive it. Returns 0, or -1 with *e: the state folder cannot be used.
 *
 * After storage->close() jobs may still run, of sources and sinks that were closed before (their
 * closed() comes) among others; the state folder is released after the last one. */
int folders_init(struct folders *folders, struct storage *storage, struct error *e);

/* To be called whenever what has come in has been dealt with, before anything is waited for: begins to
 * write what has come for files. Returns whether exchanges were told of something, so that there may be
 * more to send. */
bool folders_flush(struct folders *folders);

#endif
