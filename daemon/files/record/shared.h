/* What the sources, sinks and other jobs of a daemon share. */
#ifndef TORUSD_FILES_RECORD_SHARED_H
#define TORUSD_FILES_RECORD_SHARED_H

#include <stdatomic.h>
#include <stddef.h>

#include "daemon/base/work.h"
#include "daemon/engine/output_store.h"
#include "daemon/files/places/roots.h"
#include "daemon/files/state/journal.h"
#include "daemon/planning/calibration.h"

struct folder_sink;
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
    struct folder_sink *sinks; /* until nothing of them is left to do */
    unsigned users;            /* sources, sinks and tasks: the journal stays open for them */
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

static inline void folders_release(struct folders *folders)
{
    if (--folders->users == 0 && folders->closed)
        folders->unused(folders);
}

/* The output of this exchange could not be removed, for want of descriptors, say: that is tried again
 * whenever an output has been closed. */
void folders_not_removed(struct folders *folders, const char *id);
void folders_remove_again(struct folders *folders);

/* The object that a job is embedded in. */
#define JOB_OWNER(work, type, member) ((type *)(void *)((char *)(work)-offsetof(type, member)))

/* The two halves of an exchange of files. Return NULL without memory. */
struct source *folder_source(struct folders *folders, const struct folder_request *request,
                             const struct block_events *events);
struct sink *folder_sink(struct folders *folders, const struct folder_request *request,
                         const struct block_events *events);

/* Whether there is a sink of this exchange. */
bool folder_sink_of(const struct folders *folders, const char *id);

/* Begins to write what sinks have been given since the last call; what is in memory is written. Returns
 * whether an exchange has been told of something. */
bool folder_sinks_flush(struct folders *folders);

/* The caller does not take it after all: it closes, and nobody hears of it. */
void folder_source_disown(struct source *source);

#endif
