#include "daemon/torusd/files/source/final_check.h"

#include <string.h>

#include "daemon/torusd/files/source/opening.h"
#include "daemon/torusd/files/source/source_file.h"

static void run_check(struct work *work)
{
    struct folder_source *s = JOB_OWNER(work, struct folder_source, jobs.step);
    struct error *e = &s->jobs.error;

    for (uint32_t d = 0; d < s->request.nodes; d++) {
        struct file_status now;
        char path[FILE_PATH];
        if (!s->file[d].there)
            continue;
        int fd = source_file_borrow(s, d, e);
        if (fd < 0)
            return;
        int result = source_files(s)->status(source_files(s)->context, fd, &now);
        source_file_return(s, d, fd);
        if (result < 0)
            (void)error_set(e, ERROR_IO, "%s cannot be read: %s", source_file_path(s, d, path),
                            strerror(-result));
        else if (!source_file_is_as_before(&now, &s->file[d].status))
            (void)source_file_changed(source_file_path(s, d, path), e);
        if (e->code != ERROR_NONE)
            return;
    }
}

static void on_checked(struct work *work)
{
    source_step_over(JOB_OWNER(work, struct folder_source, jobs.step), CHECKED);
}

bool source_finish(struct source *base)
{
    struct folder_source *s = (struct folder_source *)base;

    if (s->state == OPEN && !s->jobs.failed && jobs_begin(&s->jobs, run_check, on_checked))
        s->state = CHECKING;
    return s->state == CHECKED;
}
