/* What the sources, sinks and other jobs of a daemon share. */
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
    mode_t output_mode; /* of folders that are made for results */

    /* The rest belongs to daemon/files. */
    struct journal journal;
    struct open_sink *sinks; /* until nothing of them is left to do */
    unsigned users;          /* sources, sinks and tasks: the journal stays open for them */
    void (*unused)(struct folders *folders); /* the last of them has gone, after closed */
    struct unremoved *unremoved;
    struct task *kept;
    unsigned kept_count;
    bool closed;      /* storage.close(): no done() any more */
    bool storing;     /* a calibration is being written */
    bool stored_late; /* `calibration` is to be written then */
    struct calibration calibration;
    atomic_uint held; /* descriptors that stay open between jobs, of all sources and sinks */
};

/* Files beyond so many are opened for each job: descriptors are for links and clients, too. */
#define HELD_MOST 256u

/* Whether one more file may stay open. From any thread. */
static inline bool folders_hold(struct folders *folders)
{
    if (atomic_fetch_add(&folders->held, 1) < HELD_MOST)
        return true;
    (void)atomic_fetch_sub(&folders->held, 1);
    return false;
}

/* It has been closed. */
static inline void folders_drop(struct folders *folders)
{
    (void)atomic_fetch_sub(&folders->held, 1);
}

/* One of the users has gone: the last one, after storage.close(), closes the journal. */
static inline void folders_release(struct folders *folders)
{
    if (--folders->users == 0 && folders->closed)
        folders->unused(folders);
}

#endif
