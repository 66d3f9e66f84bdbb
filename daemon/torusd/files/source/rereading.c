#include "daemon/torusd/files/source/rereading.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/files/source/chunks.h"
#include "daemon/torusd/files/source/reading_jobs.h"
#include "daemon/torusd/files/source/source_file.h"

static void run_again(struct work *work)
{
    struct folder_source *s = JOB_OWNER(work, struct folder_source, rereading.work);
    const struct file_system *files = source_files(s);
    struct rereading *a = &s->rereading;
    char path[FILE_PATH];
    int fd = source_file_borrow(s, a->file, &a->error);

    if (fd < 0)
        return;
    for (uint32_t done = 0, i = 0; done < a->length;) {
        struct run *run = &a->run[i];
        const struct iovec rest = {a->bytes + done, run->length};
        ssize_t result = files->read(files->context, fd, &rest, 1, run->place);
        if (result <= 0) {
            (void)error_set(&a->error, ERROR_IO, "%s cannot be read: %s",
                            source_file_path(s, a->file, path),
                            result < 0 ? strerror((int)-result) : "it became shorter");
            break;
        }
        done += (uint32_t)result;
        run->place += (uint64_t)result;
        run->length -= (uint32_t)result;
        i += run->length == 0;
    }
    source_file_return(s, a->file, fd);
}

/* Finds where the bytes are in the file. Returns 0, or -1 if there is no memory. */
static int find_runs(const struct folder_source *s, struct rereading *a)
{
    for (uint32_t found = 0; found < a->length; a->runs++) {
        struct run *run = reallocarray(a->run, a->runs + 1, sizeof *run);
        if (run == NULL)
            return -1;
        a->run = run;
        run += a->runs;
        uint64_t together = chunks_place_of(s, &s->file[a->file], a->offset + found, &run->place);
        if (together == 0)
            return -1;
        run->length = together < a->length - found ? (uint32_t)together : a->length - found;
        found += run->length;
    }
    return 0;
}

static void on_again(struct work *work)
{
    struct folder_source *s = JOB_OWNER(work, struct folder_source, rereading.work);

    s->rereading.state = REREAD_DONE;
    if (jobs_over(&s->jobs))
        s->jobs.events.wake(s->jobs.events.context);
}

int source_reread(struct source *base, uint32_t destination, uint64_t offset, uint32_t length,
                  const uint8_t **bytes, struct error *e)
{
    struct folder_source *s = (struct folder_source *)base;
    struct rereading *a = &s->rereading;

    if (a->state == REREADING)
        return 0;
    if (a->state == REREAD_DONE && a->file == destination && a->offset == offset &&
        a->length == length) {
        a->state = REREAD_NONE;
        *bytes = a->bytes;
        *e = a->error;
        return a->error.code == ERROR_NONE ? 1 : -1;
    }
    free(a->bytes);
    free(a->run);
    *a = (struct rereading){.file = destination, .offset = offset, .length = length};
    a->work.run = run_again;
    a->work.done = on_again;
    a->bytes = malloc(length);
    if (a->bytes == NULL || find_runs(s, a) != 0 || !jobs_submit(&s->jobs, &a->work))
        return reading_jobs_no_memory(e);
    a->state = REREADING;
    return 0;
}
