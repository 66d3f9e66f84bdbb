#include "daemon/torusd/files/sink/output_file.h"

#include <stdio.h>
#include <string.h>

#include "daemon/torusd/files/system/file_stamp.h"
#include "daemon/torusd/files/target/target.h"

int output_open(struct folder_sink *s, uint32_t origin, struct error *e)
{
    struct output *o = &s->output[origin];

    if (o->fd >= 0)
        return o->fd;
    int fd =
        o->made ? target_reopen_file(&s->target, origin, e) : target_create(&s->target, origin, e);
    if (fd >= 0 && !o->made) {
        o->made = true;
        int result = output_note(s, origin, fd);
        if (result < 0) {
            sink_files(s)->close(sink_files(s)->context, fd);
            return output_cannot_write(s, origin, result, e);
        }
    }
    if (fd >= 0 && folders_reserve_descriptor(s->folders))
        o->fd = fd;
    return fd;
}

void output_leave(struct folder_sink *s, uint32_t origin, int fd)
{
    if (fd != s->output[origin].fd)
        sink_files(s)->close(sink_files(s)->context, fd);
}

void output_close(struct folder_sink *s, uint32_t origin)
{
    struct output *o = &s->output[origin];

    if (o->fd < 0)
        return;
    sink_files(s)->close(sink_files(s)->context, o->fd);
    o->fd = -1;
    folders_return_descriptor(s->folders);
}

void output_start_sync(struct folder_sink *s, struct output *o, int fd)
{
    sink_files(s)->start_sync(sink_files(s)->context, fd);
    o->unsynced = 0;
}

int output_check(const struct folder_sink *s, uint32_t origin, int fd, struct error *e)
{
    const struct file_system *files = sink_files(s);
    struct file_status status;
    char name[16];
    int result = files->status(files->context, fd, &status);

    if (result < 0)
        return output_cannot_write(s, origin, result, e);
    if (target_stamp_of(origin, &status) == s->output[origin].stamp)
        return 0;
    (void)snprintf(name, sizeof name, "%u", origin);
    return target_file_differs(&s->target, name, status.kind, e);
}

int output_note(struct folder_sink *s, uint32_t origin, int fd)
{
    const struct file_system *files = sink_files(s);
    struct file_status status;
    int result = files->status(files->context, fd, &status);

    s->output[origin].stamp = result == 0 ? target_stamp_of(origin, &status) : FILE_STAMP_NONE;
    return result;
}

int output_is_there(const struct folder_sink *s, uint32_t origin, enum file_kind *kind)
{
    struct file_status status;
    int result = target_find_file(&s->target, origin, &status);

    if (result < 0)
        return result;
    *kind = status.kind;
    return status.kind == FILE_REGULAR &&
           target_stamp_of(origin, &status) == s->output[origin].stamp;
}

int output_limit(struct folder_sink *s, uint32_t origin, int fd, struct error *e)
{
    const struct file_system *files = sink_files(s);
    struct output *o = &s->output[origin];
    struct file_status status;

    if (!o->written)
        return 0;
    int result = files->status(files->context, fd, &status);
    if (result == 0 && status.size > o->limit) {
        if (output_check(s, origin, fd, e) != 0)
            return -1;
        result = files->truncate(files->context, fd, o->limit);
        if (result == 0)
            result = output_note(s, origin, fd);
    }
    return result < 0 ? output_cannot_write(s, origin, result, e) : 0;
}

bool output_has_block(const struct folder_sink *s, uint32_t origin)
{
    const struct folder_request *r = &s->request;

    return r->operation == OPERATION_EXCHANGE ? !folder_is_gone(r, origin)
                                              : folder_sends(r, origin);
}

int output_cannot_write(const struct folder_sink *s, uint32_t origin, int result, struct error *e)
{
    return error_set(e, ERROR_IO, "%s/%s/%u cannot be written: %s", s->target.entry.folder,
                     s->target.entry.final, origin, strerror(-result));
}
