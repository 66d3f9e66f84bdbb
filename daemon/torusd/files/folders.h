/* Folders as sources and sinks of blocks, and the state folder: implements daemon/torusd/engine/output_store.h.
 * All accesses to a disk run in jobs (base/work.h), so that a slow disk never stops the links; only
 * folders_init() blocks. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "daemon/lib/base/work.h"
#include "daemon/torusd/disk/journal.h"
#include "daemon/torusd/engine/output_store.h"
#include "daemon/torusd/files/target.h"
#include "daemon/torusd/planning/calibration.h"

struct task;
struct unremoved;

/* What all sources, sinks and tasks of a daemon share. */
struct folders {
    /* Set by the caller; all of it must outlive the last job. The caller may replace `roots` and `output_mode`
     * on the loop: sources, sinks and tasks keep those with which they began. */
    const struct file_system *files;
    const struct workers *workers;
    struct slab_pool *pool;
    struct made_folders *made; /* above targets, those of copies among them */
    const struct roots *roots;
    const char *state_folder;
    mode_t output_mode; /* mode of the folders that are made for results */

    /* The rest belongs to daemon/torusd/files. */
    struct journal journal;
    struct open_sink *sinks; /* sinks that have work left */
    unsigned users;          /* sources, sinks and tasks: the journal stays open for them */
    /* Called when `closed` is set and there are no more users. */
    void (*on_unused)(struct folders *folders);
    struct unremoved *unremoved;
    struct task *task_reserve; /* see outcomes.h */
    bool closed;               /* storage.close() was called: done() is no longer called */
    bool storing;              /* a calibration is being written */
    bool stored_late;          /* `calibration` must be written again after that */
    struct calibration calibration;
    atomic_uint open_files; /* files of all sources and sinks that stay open between jobs */
};

/* Most files that stay open between jobs; further files are opened for each job, because links and clients
 * need descriptors, too. */
#define OPEN_FILES_MOST 256u

/* Reserves a descriptor for a file that stays open. Returns false if too many stay open. May be called from
 * any thread. */
static inline bool folders_reserve_descriptor(struct folders *folders)
{
    if (atomic_fetch_add(&folders->open_files, 1) < OPEN_FILES_MOST)
        return true;
    (void)atomic_fetch_sub(&folders->open_files, 1);
    return false;
}

/* Gives back a reservation, when the file has been closed. */
static inline void folders_return_descriptor(struct folders *folders)
{
    (void)atomic_fetch_sub(&folders->open_files, 1);
}

/* Whether no source, sink or task is left that may use earlier `roots`. */
static inline bool folders_are_unused(const struct folders *folders)
{
    return folders->users == 0;
}

/* Removes a user. After storage.close() the last user closes the journal. */
static inline void folders_remove_user(struct folders *folders)
{
    if (--folders->users == 0 && folders->closed)
        folders->on_unused(folders);
}

/* An output of this node that has work left. */
struct open_sink { /* the first member of a sink */
    struct open_sink *next;
    char id[sizeof((struct target *)0)->id]; /* id of the attempt that uses the sink */
    char next_id[sizeof((struct target *)0)
                     ->id]; /* id that the target has, or that a running job gives it */
};

/* Whether the list from `first` on has a sink of this exchange. */
static inline bool open_sinks_have(const struct open_sink *first, const char *id)
{
    while (first != NULL && strcmp(first->id, id) != 0 && strcmp(first->next_id, id) != 0)
        first = first->next;
    return first != NULL;
}

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

/* --- what folders.c needs of sources and sinks --- */

/* Starts to open the source of an exchange. Returns NULL if there is no memory. */
struct source *folder_source(struct folders *folders, const struct folder_request *request,
                             const struct block_events *events);

/* Closes a source that its caller has not used. No events follow. */
void folder_source_disown(struct source *source);

/* Starts to prepare the output folder of an exchange, or continues with a kept one (request->kept_sink).
 * Returns NULL if there is no memory. */
struct sink *folder_sink(struct folders *folders, const struct folder_request *request,
                         const struct block_events *events);
