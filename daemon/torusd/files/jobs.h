/* The jobs of a source or sink: at most one step (opening, closing ...) at a time, and other jobs that only
 * read or write. The owner is freed when the last job is over. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/lib/base/work.h"
#include "daemon/torusd/engine/blocks.h"

/* Returns the object in which a job is embedded. */
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

/* Starts a step. Returns false if there is no memory. */
bool jobs_begin(struct jobs *j, void (*run)(struct work *step), void (*done)(struct work *step));

/* Submits a job that is not a step. Returns false if there is no memory. */
bool jobs_submit(struct jobs *j, struct work *work);

/* To be called first in done() of every job. Returns false if the owner is closing: then the owner may have
 * been freed, and the caller must not use it. */
bool jobs_over(struct jobs *j);

/* Like jobs_over(), for a job that is one step of several. Returns true only if the step succeeded; if it failed,
 * the events have its error. */
bool jobs_step_over(struct jobs *j);

/* Tells the first failure to the events; ignores later ones. */
void jobs_fail(struct jobs *j, const struct error *e);

/* As source_ops.close(). */
bool jobs_close(struct jobs *j);
