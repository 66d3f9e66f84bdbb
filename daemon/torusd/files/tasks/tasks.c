#include "daemon/torusd/files/tasks/tasks.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/lib/base/log.h"

#define TASKS_KEPT 64

static void free_task(struct folders *folders, struct task *task)
{
    if (folders->task_reserve_count == TASKS_KEPT) {
        free(task);
        return;
    }
    task->next = folders->task_reserve;
    folders->task_reserve = task;
    folders->task_reserve_count++;
}

static struct task *take_task(struct folders *folders)
{
    struct task *task = malloc(sizeof *task);

    if (task == NULL && folders->task_reserve != NULL) {
        task = folders->task_reserve;
        folders->task_reserve = task->next;
        folders->task_reserve_count--;
    }
    return task;
}

void tasks_free(struct folders *folders)
{
    while (folders->task_reserve != NULL) {
        struct task *task = folders->task_reserve;
        folders->task_reserve = task->next;
        free(task);
    }
    folders->task_reserve_count = 0;
}

int tasks_init(struct folders *folders)
{
    for (unsigned i = 0; i < TASKS_KEPT; i++) {
        struct task *task = malloc(sizeof *task);
        if (task == NULL)
            return -1;
        free_task(folders, task);
    }
    return 0;
}

static void on_task_done(struct work *work)
{
    struct task *task = JOB_OWNER(work, struct task, work);
    struct folders *folders = task->folders;

    if (task->told != NULL && !folders->closed)
        task->told(task->argument, task->id, task->error.code != ERROR_NONE ? &task->error : NULL);
    free_task(folders, task);
    folders_remove_user(folders);
}

struct task *tasks_begin(struct folders *folders, void (*run)(struct work *work),
                         const struct task *values)
{
    struct task *task = take_task(folders);

    if (task != NULL) {
        *task = *values;
        task->folders = folders;
        task->roots = folders->roots;
        task->output_mode = folders->output_mode;
        task->work.run = run;
        task->work.done = on_task_done;
        if (workers_submit(folders->workers, &task->work) == 0) {
            folders->users++;
            return task;
        }
        free_task(folders, task);
    }
    log_error("out of memory to write to state folder %s", folders->state_folder);
    return NULL;
}

struct task tasks_values(const char *id, storage_done_fn *told, void *argument)
{
    struct task task = {.told = told, .argument = argument};

    (void)snprintf(task.id, sizeof task.id, "%s", id);
    return task;
}
