/* The data that the sources, sinks and other jobs of a daemon share. */
#ifndef TORUSD_FILES_RECORD_FOLDERS_RECORD_H
#define TORUSD_FILES_RECORD_FOLDERS_RECORD_H

#include <stdatomic.h>
#include <stddef.h>

#include "daemon/base/work.h"
#include "daemon/engine/output_store.h"
#include "daemon/files/places/roots.h"
#include "daemon/files/record/open_sink.h"
#include "daemon/files/state/journal.h"
#include "daemon/planning/calibration.h"

struct task;
struct unremoved;

struct folders {
    /* Set by the caller; all of it must outlive the last job. */
    const struct file_system *files;
    const struct workers *workers;
    struct slab_pool *pool;
    const struct roots *roots;
    const char *state_folder;
    mode_t output_mode; /* mode of the folders that are made for results */

    /* The rest belongs to daemon/files. */
    struct journal journal;
    struct open_sink *sinks; /* sinks that have work left */
    unsigned users;          /* sources, sinks and tasks: the journal stays open for them */
    /* Called when the last user has gone and `closed` is set. */
    void (*unused)(struct folders *folders);
    struct unremoved *unremoved;
    struct task *kept;
    unsigned kept_count;
    bool closed;      /* storage.close() was called: done() is not called any more */
    bool storing;     /* a calibration is being written */
    bool stored_late; /* `calibration` must be written after that */
    struct calibration calibration;
    atomic_uint held; /* descriptors that stay open between jobs, of all sources and sinks */
};

/* Most files that stay open between jobs; further files are opened for each job, because links and clients
 * need descriptors, too. */
#define HELD_MOST 256u

/* Reserves one descriptor; returns whether one more file may stay open. May be called from any thread. */
static inline bool folders_hold(struct folders *folders)
{
    if (atomic_fetch_add(&folders->held, 1) < HELD_MOST)
        return true;
    (void)atomic_fetch_sub(&folders->held, 1);
    return false;
}

/* Gives the reservation back, when the file has been closed. */
static inline void folders_drop(struct folders *folders)
{
    (void)atomic_fetch_sub(&folders->held, 1);
}

/* To be called when a user has gone. After storage.close() the last one closes the journal. */
static inline void folders_release(struct folders *folders)
{
    if (--folders->users == 0 && folders->closed)
        folders->unused(folders);
}

#endif
