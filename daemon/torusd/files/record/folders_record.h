/* The data that all sources, sinks and tasks of a daemon share. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

#include "daemon/lib/base/work.h"
#include "daemon/torusd/engine/output_store.h"
#include "daemon/torusd/files/places/made_folders.h"
#include "daemon/torusd/files/record/open_sink.h"
#include "daemon/torusd/files/state/journal.h"
#include "daemon/torusd/planning/calibration.h"

struct task;
struct unremoved;

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
    struct task *task_reserve; /* see tasks.h */
    unsigned task_reserve_count;
    bool closed;      /* storage.close() was called: done() is no longer called */
    bool storing;     /* a calibration is being written */
    bool stored_late; /* `calibration` must be written again after that */
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
