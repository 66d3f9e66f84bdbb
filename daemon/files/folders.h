/* Folders as sources and sinks of blocks, and the state folder: implements
 * daemon/exchange/storage.h. Whatever touches a disk runs in jobs (base/work.h), so that no disk
 * ever stops the links; only folders_init() blocks. */
#ifndef TORUSD_FILES_FOLDERS_H
#define TORUSD_FILES_FOLDERS_H

#include "daemon/base/work.h"
#include "daemon/exchange/storage.h"
#include "daemon/files/journal.h"
#include "daemon/files/roots.h"

struct folder_sink;
struct task;

struct folders {
    /* Set by the caller; all of it must outlive the last job. */
    const struct file_system *files;
    const struct workers *workers;
    struct slab_pool *pool;
    const struct roots *roots;
    const char *state_folder;

    /* The rest belongs to daemon/files. */
    struct journal journal;
    struct folder_sink *sinks; /* until nothing of them is left to do */
    unsigned users;            /* sources, sinks and tasks: the journal stays open for them */
    struct task *kept;
    unsigned kept_count;
    bool closed;      /* storage.close(): no done() any more */
    bool storing;     /* a calibration is being written */
    bool stored_late; /* `calibration` is to be written then */
    struct calibration calibration;
};

/* Opens the state folder, removes what a crash left unfinished, and fills *storage for the core;
 * *folders must outlive it. Returns 0, or -1 with *e: the state folder cannot be used.
 *
 * After storage->close() jobs may still run, of sources and sinks that were closed before (their
 * closed() comes) among others; the state folder is released after the last one. */
int folders_init(struct folders *folders, struct storage *storage, struct error *e);

/* The two halves, used by folders.c. Return NULL without memory. */
struct source *folder_source(struct folders *folders, const struct folder_request *request,
                             const struct block_events *events);
struct sink *folder_sink(struct folders *folders, const struct folder_request *request,
                         const struct block_events *events);

/* The caller does not take it after all: it closes, and nobody hears of it. */
void folder_source_disown(struct source *source);

/* The object that a job is embedded in. */
#define JOB_OWNER(work, type, member) ((type *)(void *)((char *)(work)-offsetof(type, member)))

/* One user less; the last one after storage.close() closes the journal. */
void folders_release(struct folders *folders);

#endif
