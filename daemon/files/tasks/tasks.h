/* What is done for the core besides sources and sinks, each in a job. Some tasks are kept for when there is no
 * memory: a decision must be recorded or refused. */
#ifndef TORUSD_FILES_TASKS_TASKS_H
#define TORUSD_FILES_TASKS_TASKS_H

#include "daemon/files/record/folders_record.h"
#include "daemon/files/record/jobs.h"
#include "daemon/planning/calibration.h"

struct task {
    struct work work;
    struct task *next; /* of those kept */
    struct folders *folders;
    char id[128];
    bool committed;
    struct calibration calibration;
    storage_done_fn *told; /* NULL: nobody */
    void *argument;
    struct error error;
};

/* Makes the tasks that are kept. Returns 0, or -1 without memory. */
int tasks_init(struct folders *folders);

/* Frees those that are kept. */
void tasks_free(struct folders *folders);

/* The values of a task for tasks_begin(); `told` may be NULL. */
struct task tasks_values(const char *id, storage_done_fn *told, void *argument);

/* Runs a task with these values. Returns NULL without memory, beyond the tasks that are kept for that: nobody is
 * told then. */
struct task *tasks_begin(struct folders *folders, void (*run)(struct work *work),
                         const struct task *values);

#endif
