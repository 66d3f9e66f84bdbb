/* Jobs for the core that are not part of a source or sink. Some tasks are held in reserve: even without
 * memory, a decision must be recorded, or refused. */
#pragma once

#include "daemon/torusd/files/record/folders_record.h"
#include "daemon/torusd/files/record/jobs.h"
#include "daemon/torusd/planning/calibration.h"

struct task {
    struct work work;
    struct task *next; /* next task in reserve */
    struct folders *folders;
    const struct roots *roots; /* this and the mode: those of the time when it began */
    mode_t output_mode;
    char id[128];
    bool committed;
    struct calibration calibration;
    storage_done_fn *told; /* NULL: nobody waits for the end */
    void *argument;
    struct error error;
};

/* Makes the reserve of tasks. Returns 0, or -1 if there is no memory. */
int tasks_init(struct folders *folders);

/* Frees the reserve of tasks. */
void tasks_free(struct folders *folders);

/* Returns the values of a task for tasks_begin(); `told` may be NULL. */
struct task tasks_values(const char *id, storage_done_fn *told, void *argument);

/* Runs a task with these values. Returns NULL if there is no memory and the reserve is used up; then `told`
 * is not called. */
struct task *tasks_begin(struct folders *folders, void (*run)(struct work *work),
                         const struct task *values);
