#include "daemon/torusd/files/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/engine/digest.h"

/* --- one file --- */

const char *source_file_path(const struct folder_source *s, uint32_t d, char *out)
{
    int n = snprintf(out, FILE_PATH, "%s", s->folder);
    if (!s->single)
        (void)snprintf(out + n, FILE_PATH - (size_t)n, "/%u", d);
    return out;
}

/* Fills *e: the file has changed. Returns -1. */
static int source_file_changed(const char *path, struct error *e)
{
    return error_set(e, ERROR_DAMAGED, "%s was changed while it was being sent", path);
}

/* Returns a digest of whether there is a file, its identity, size and time; never 0. */
static uint64_t mark_of(bool there, const struct file_status *status)
{
    const uint64_t facts[] = {there,
                              status->size,
                              (uint64_t)status->modified.tv_sec,
                              (uint64_t)status->modified.tv_nsec,
                              status->device,
                              status->number};

    return digest_bytes(facts, sizeof facts, 0) | 1;
}

static bool is_as_before(const struct file *f, const struct file_status *now)
{
    return mark_of(true, now) == mark_of(true, &f->status);
}

/* Says what to use for a file that is not regular. */
static int not_regular(const struct folder_source *s, const struct file *f, const char *path,
                       struct error *e)
{
    if (f->status.kind != FILE_FOLDER)
        return error_set(e, ERROR_REFUSED, "%s is not a regular file", path);
    return error_set(e, ERROR_REFUSED, "%.200s is a folder: to send folders, use 'torusctl %s'",
                     path,
                     s->request.operation == OPERATION_EXCHANGE ? "exchange --trees" : "copy");
}

/* Opens the file of `d`, in a job. Returns 0, also if the file is missing and may be; or -1 with *e. */
static int source_file_open(struct folder_source *s, uint32_t d, struct error *e)
{
    const struct file_system *files = source_files(s);
    struct file *f = &s->file[d];
    struct location place;
    char path[FILE_PATH];
    int fd = roots_open(s->roots, source_file_path(s, d, path), &place, &f->status, e);

    f->there = fd >= 0;
    if (f->there && f->status.kind == FILE_REGULAR && f->status.size > 0 &&
        folders_reserve_descriptor(s->folders)) {
        f->fd = fd;
        f->in_memory = f->status.size > CHUNK_LEAST && files->in_memory(files->context, fd);
    } else if (f->there) {
        files->close(files->context, fd);
    }
    if (f->there && f->status.kind != FILE_REGULAR)
        return not_regular(s, f, path, e);
    if (!f->there)
        f->status = (struct file_status){0};
    if (!f->there && e->code != ERROR_NONE)
        return -1;
    if (f->marked != 0 && f->marked != mark_of(f->there, &f->status))
        return source_file_changed(path, e);
    s->base.unmoved.missing += !f->there;
    if (f->there || s->request.missing_ok)
        return 0;
    return error_set(
        e, ERROR_REFUSED,
        "source file %s (the block %s node %u) is missing; with --missing-ok it counts as empty",
        path, s->request.operation == OPERATION_EXCHANGE ? "for" : "of", d);
}

int source_file_borrow(const struct folder_source *s, uint32_t d, struct error *e)
{
    const struct file *f = &s->file[d];
    struct file_status now;
    struct location place;
    char path[FILE_PATH];

    if (f->fd >= 0)
        return f->fd;
    int fd = roots_open(s->roots, source_file_path(s, d, path), &place, &now, e);
    if (fd >= 0 && is_as_before(f, &now))
        return fd;
    if (fd >= 0)
        source_files(s)->close(source_files(s)->context, fd);
    else if (e->code != ERROR_NONE)
        return -1;
    return source_file_changed(path, e);
}

void source_file_return(const struct folder_source *s, uint32_t d, int fd)
{
    if (fd != s->file[d].fd)
        source_files(s)->close(source_files(s)->context, fd);
}

/* --- finding and opening all files --- */

/* Whether a file with this name is never data: hidden files, and files that mkfs makes. */
static bool is_no_data(const char *name)
{
    return name[0] == '.' || strcmp(name, "lost+found") == 0;
}

/* Whether a file is named by the rank of a node, as source_file_path() writes it. */
static bool names_node(const char *name, uint32_t nodes)
{
    char *end;
    unsigned long rank = strtoul(name, &end, 10);

    return name[0] >= '0' && name[0] <= '9' && (name[0] != '0' || name[1] == '\0') &&
           *end == '\0' && rank < nodes;
}

static void count_unused(void *argument, const char *name)
{
    struct folder_source *s = argument;

    if (!is_no_data(name) && !names_node(name, s->request.nodes))
        s->base.unmoved.unused++;
}

/* Finds out whether the source is a folder or (if the operation allows it) the file itself. */
static int look_at(struct folder_source *s, const char *from, struct error *e)
{
    const struct file_system *files = source_files(s);
    struct location place;
    struct file_status status = {.kind = FILE_OTHER};
    int file = roots_open(s->roots, from, &place, &status, e);
    bool exchange = s->request.operation == OPERATION_EXCHANGE;

    /* A folder that torusd may search but not read can be used; its unused files are then not counted. */
    if (file >= 0 && status.kind == FILE_FOLDER)
        (void)files->list(files->context, file, count_unused, s);
    if (file >= 0)
        files->close(files->context, file);
    else if (e->code != ERROR_NONE || exchange) {
        if (e->code == ERROR_NONE)
            e->code = ERROR_IO;
        return -1;
    }
    if (exchange && status.kind != FILE_FOLDER)
        return error_set(e, ERROR_REFUSED, "source %s is not a folder", from);
    s->single = status.kind != FILE_FOLDER;
    return 0;
}

static void run_open(struct work *work)
{
    struct folder_source *s = JOB_OWNER(work, struct folder_source, jobs.step);
    bool exchange = s->request.operation == OPERATION_EXCHANGE;
    uint32_t first = exchange ? 0 : s->request.rank, end = exchange ? s->request.nodes : first + 1;
    struct error *e = &s->jobs.error;

    if (e->code != ERROR_NONE || !folder_sends(&s->request, s->request.rank))
        return;
    if (look_at(s, s->folder, e) != 0)
        return;
    for (uint32_t d = first; d < end; d++)
        if (!folder_is_gone(&s->request, d) && source_file_open(s, d, e) != 0)
            return;
    e->code = ERROR_NONE; /* missing files have set it */
}

/* To be called when opening or checking is over: the source enters `state`, unless the step has failed. */
static void source_step_over(struct folder_source *s, enum source_state state)
{
    if (!jobs_step_over(&s->jobs))
        return;
    s->state = state;
    s->jobs.events.wake(s->jobs.events.context);
}

static void on_opened(struct work *work)
{
    source_step_over(JOB_OWNER(work, struct folder_source, jobs.step), OPEN);
}

bool source_open(struct folder_source *s)
{
    return jobs_begin(&s->jobs, run_open, on_opened);
}

bool source_opened(struct source *base)
{
    return ((struct folder_source *)base)->state != OPENING;
}

uint64_t source_size(struct source *base, uint32_t destination)
{
    return source_left(base, destination,
                       ((struct folder_source *)base)->file[destination].status.size);
}

uint64_t source_mark(const struct source *base, uint32_t destination)
{
    const struct folder_source *s = (const struct folder_source *)base;

    const struct file *f = &s->file[destination];

    return folder_is_gone(&s->request, destination) ? 0 : mark_of(f->there, &f->status);
}

/* --- the check at the end: no file was changed while it was sent --- */

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
        else if (!is_as_before(&s->file[d], &now))
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
