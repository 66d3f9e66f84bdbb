/* The jobs of a source or sink: one step of its life at a time, and others that only read or write.
 * It goes when the last one is over. */
#ifndef TORUSD_FILES_RECORD_JOBS_H
#define TORUSD_FILES_RECORD_JOBS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/work.h"
#include "daemon/engine/blocks.h"

/* The object that a job is embedded in. */
#define JOB_OWNER(work, type, member) ((type *)(void *)((char *)(work)-offsetof(type, member)))

struct jobs { /* embedded in its owner */
    const struct workers *workers;
    struct block_events events;
    void (*run_close)(struct work *step); /* the last step, off the loop */
    void (*release)(struct jobs *jobs);   /* frees the owner */
    struct work step;
    struct error error; /* of the step */
    unsigned under_way;
    bool failed, closing;
};

/* Begins a step. Returns false without memory. */
bool jobs_begin(struct jobs *j, void (*run)(struct work *step), void (*done)(struct work *step));

/* Submits another job. Returns false without memory. */
bool jobs_submit(struct jobs *j, struct work *work);

/* One of them is over: called first in every done(). Returns false if the owner is closing: it may be
 * gone, and nobody is to be told. */
bool jobs_over(struct jobs *j);

/* The same for a step: true only if it went well; else its error has been told. */
bool jobs_step_over(struct jobs *j);

/* Tells of the first failure. */
void jobs_fail(struct jobs *j, const struct error *e);

/* As source_ops.close(). */
bool jobs_close(struct jobs *j);

#endif
