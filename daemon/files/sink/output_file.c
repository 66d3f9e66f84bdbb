#include "daemon/files/sink/output_file.h"

#include <string.h>

#include "daemon/files/target/target.h"

int output_open(struct folder_sink *s, uint32_t origin, struct error *e)
{
    struct output *o = &s->output[origin];

    if (o->fd >= 0)
        return o->fd;
    int fd =
        o->made ? target_reopen_file(&s->target, origin, e) : target_create(&s->target, origin, e);
    o->made |= fd >= 0;
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

int output_limit(struct folder_sink *s, uint32_t origin, int fd)
{
    const struct file_system *files = sink_files(s);
    struct output *o = &s->output[origin];
    struct file_status status;
    int result = o->written ? files->status(files->context, fd, &status) : 0;

    if (o->written && result == 0 && status.size > o->limit)
        result = files->truncate(files->context, fd, o->limit);
    return result;
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
