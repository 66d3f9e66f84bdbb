#include "daemon/torusd/files/tasks/calibrations.h"

#include "daemon/lib/base/log.h"
#include "daemon/torusd/files/state/calibration_file.h"
#include "daemon/torusd/files/tasks/tasks.h"

static void run_store(struct work *work)
{
    struct task *task = JOB_OWNER(work, struct task, work);

    (void)calibration_file_write(&task->folders->journal, &task->calibration, &task->error);
}

static void on_stored(void *argument, const char *id, const struct error *e)
{
    struct folders *folders = argument;

    (void)id;
    if (e != NULL)
        log_warning("the calibration cannot be written to the state folder: %s", e->text);
    folders->storing = false;
    if (folders->stored_late)
        calibrations_store(folders, &folders->calibration);
}

void calibrations_store(void *context, const struct calibration *c)
{
    struct folders *folders = context;
    struct task values = tasks_values("", on_stored, folders);

    if (folders->storing) {
        folders->calibration = *c;
        folders->stored_late = true;
        return;
    }
    folders->stored_late = false;
    values.calibration = *c;
    folders->storing = tasks_begin(folders, run_store, &values) != NULL;
}

int calibrations_load(void *context, struct calibration *c, struct error *e)
{
    return calibration_file_read(&((struct folders *)context)->journal, c, e);
}
