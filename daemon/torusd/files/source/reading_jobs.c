#include "daemon/torusd/files/source/reading_jobs.h"

#include <string.h>

#include "daemon/torusd/files/source/source_file.h"

#define JOB_BYTES CHUNK_MOST /* enough bytes for one job */
#define JOB_CHUNKS 64u

/* Reads a chunk. Returns 0, or -1 with *e. */
static int read_chunk(const struct folder_source *s, const struct chunk *c, int fd, struct error *e)
{
    const struct file_system *files = source_files(s);
    struct iovec piece[CHUNK_PARTS], *first = piece;
    int count = (int)c->parts;
    uint32_t done = 0;
    char path[FILE_PATH];

    for (int i = 0; i < count; i++)
        piece[i] = (struct iovec){(void *)(uintptr_t)c->part[i].data, c->part[i].length};
    while (done < c->length) {
        ssize_t result = files->read(files->context, fd, first, count, c->place + done);
        if (result < 0)
            return error_set(e, ERROR_IO, "%s cannot be read: %s",
                             source_file_path(s, c->file, path), strerror((int)-result));
        if (result == 0)
            return error_set(e, ERROR_IO, "%s became shorter while it was being sent",
                             source_file_path(s, c->file, path));
        done += (uint32_t)result;
        file_system_advance(&first, &count, (size_t)result);
    }
    return 0;
}

static void run_read(struct work *work)
{
    struct reading *r = JOB_OWNER(work, struct reading, work);
    const struct folder_source *s = r->owner;

    for (struct chunk *c = r->chunks; c != NULL; c = c->next) {
        int fd = source_file_borrow(s, c->file, &r->error);
        if (fd < 0)
            return;
        int result = read_chunk(s, c, fd, &r->error);
        source_file_return(s, c->file, fd);
        if (result != 0)
            return;
    }
}

static void on_read(struct work *work);

/* Gives the first chunks of the queue to a job. Returns 0, or -1 if there is no memory. */
static int start_reading(struct folder_source *s, struct reading *r)
{
    struct chunk **end = &s->queue;
    uint32_t bytes = 0;

    for (unsigned i = 0; *end != NULL && i < JOB_CHUNKS && bytes < JOB_BYTES; i++) {
        bytes += (*end)->length;
        end = &(*end)->next;
    }
    r->owner = s;
    r->work.run = run_read;
    r->work.done = on_read;
    struct chunk *first = s->queue, *rest = *end;
    *end = NULL;
    r->chunks = first;
    if (!jobs_submit(&s->jobs, &r->work)) {
        *end = rest;
        r->chunks = NULL;
        return -1;
    }
    s->queue = rest;
    if (rest == NULL)
        s->queue_end = &s->queue;
    s->waiting -= bytes;
    s->readings++;
    return 0;
}

int reading_jobs_start(struct folder_source *s)
{
    for (unsigned i = 0; i < READERS && s->queue != NULL; i++)
        if (s->reading[i].chunks == NULL && s->waiting >= s->readings * (uint64_t)JOB_BYTES &&
            start_reading(s, &s->reading[i]) != 0)
            return -1;
    return 0;
}

int reading_jobs_no_memory(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory to read files");
}

static void on_read(struct work *work)
{
    struct reading *r = JOB_OWNER(work, struct reading, work);
    struct folder_source *s = r->owner;

    for (struct chunk *c = r->chunks; c != NULL; c = c->next)
        c->ready = true;
    r->chunks = NULL;
    s->readings--;
    if (!jobs_over(&s->jobs))
        return;
    if (r->error.code == ERROR_NONE && !s->jobs.failed && reading_jobs_start(s) != 0)
        (void)reading_jobs_no_memory(&r->error);
    if (r->error.code != ERROR_NONE)
        jobs_fail(&s->jobs, &r->error);
    else
        s->jobs.events.wake(s->jobs.events.context);
}

void reading_jobs_add(struct folder_source *s, struct chunk *c)
{
    c->next = NULL;
    *s->queue_end = c;
    s->queue_end = &c->next;
    s->waiting += c->length;
}
