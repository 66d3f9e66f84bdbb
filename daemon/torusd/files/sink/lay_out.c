#include "daemon/torusd/files/sink/lay_out.h"

#include "daemon/torusd/files/sink/output_file.h"
#include "daemon/torusd/files/sink/parts.h"

static void run_make(struct work *work)
{
    struct part *part = JOB_OWNER(work, struct part, work);
    struct folder_sink *s = part->owner;

    for (uint32_t i = part->first; i < part->end; i++) {
        if (!output_has_block(s, i))
            continue;
        int fd = output_open(s, i, &part->error);
        if (fd < 0)
            return;
        int result = output_limit(s, i, fd, &part->error);
        output_leave(s, i, fd);
        if (result != 0)
            return;
    }
}

static int on_made(struct folder_sink *s)
{
    s->state = FILLING;
    s->jobs.events.wake(s->jobs.events.context);
    return 0;
}

int sink_lay_out(struct sink *base, uint64_t round_bytes, uint32_t segments, struct error *e)
{
    struct folder_sink *s = (struct folder_sink *)base;

    (void)round_bytes, (void)segments;
    if (parts_begin(s, run_make, on_made) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory to write files");
    s->state = MAKING;
    return 0;
}
