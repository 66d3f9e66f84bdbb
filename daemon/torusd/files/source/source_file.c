#include "daemon/torusd/files/source/source_file.h"

#include <stdio.h>

#include "daemon/torusd/engine/digest.h"

const char *source_file_path(const struct folder_source *s, uint32_t d, char *out)
{
    int n = snprintf(out, FILE_PATH, "%s", s->folder);
    if (!s->single)
        (void)snprintf(out + n, FILE_PATH - (size_t)n, "/%u", d);
    return out;
}

int source_file_changed(const char *path, struct error *e)
{
    return error_set(e, ERROR_DAMAGED, "%s was changed while it was being sent", path);
}

uint64_t source_file_mark(const struct file *f)
{
    uint64_t mark = digest_mix(f->there);

    mark = digest_mix(mark ^ f->status.size);
    mark = digest_mix(mark ^ (uint64_t)f->status.modified.tv_sec);
    mark = digest_mix(mark ^ (uint64_t)f->status.modified.tv_nsec);
    mark = digest_mix(mark ^ f->status.device);
    return digest_mix(mark ^ f->status.number) | 1;
}

bool source_file_is_as_before(const struct file_status *now, const struct file_status *before)
{
    return now->size == before->size && now->modified.tv_sec == before->modified.tv_sec &&
           now->modified.tv_nsec == before->modified.tv_nsec && now->device == before->device &&
           now->number == before->number;
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

int source_file_open(struct folder_source *s, uint32_t d, struct error *e)
{
    const struct file_system *files = source_files(s);
    struct file *f = &s->file[d];
    struct place place;
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
    if (f->marked != 0 && f->marked != source_file_mark(f))
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
    struct place place;
    char path[FILE_PATH];

    if (f->fd >= 0)
        return f->fd;
    int fd = roots_open(s->roots, source_file_path(s, d, path), &place, &now, e);
    if (fd >= 0 && source_file_is_as_before(&now, &f->status))
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
