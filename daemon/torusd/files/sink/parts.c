#include "daemon/torusd/files/sink/parts.h"

#include "daemon/torusd/files/sink/attempt.h"

#define PART_LEAST 16u /* files */

static void on_part_done(struct work *work);

/* Gives files to jobs, while there are free jobs and memory. */
static void start_parts(struct folder_sink *s)
{
    uint32_t nodes = s->request.nodes, each = (nodes + PARTS - 1) / PARTS;

    if (each < PART_LEAST)
        each = PART_LEAST;
    for (unsigned i = 0; i < PARTS && s->next_file < nodes; i++) {
        struct part *part = &s->part[i];
        if (part->owner != NULL)
            continue;
        *part = (struct part){.owner = s, .first = s->next_file};
        part->end = nodes - part->first > each ? part->first + each : nodes;
        part->work.run = s->run_part;
        part->work.done = on_part_done;
        if (!jobs_submit(&s->jobs, &part->work)) {
            part->owner = NULL;
            return;
        }
        s->parts++;
        s->next_file = part->end;
    }
}

int parts_begin(struct folder_sink *s, void (*run)(struct work *work),
                int (*over)(struct folder_sink *s))
{
    s->run_part = run;
    s->parts_over = over;
    s->next_file = 0;
    start_parts(s);
    return s->parts > 0 ? 0 : -1;
}

static void on_part_done(struct work *work)
{
    struct part *part = JOB_OWNER(work, struct part, work);
    struct folder_sink *s = part->owner;

    part->owner = NULL;
    s->parts--;
    if (!jobs_over(&s->jobs))
        return;
    if (part->error.code != ERROR_NONE)
        jobs_fail(&s->jobs, &part->error);
    if (s->jobs.failed || attempt_start_next(s))
        return;
    start_parts(s);
    if (s->parts > 0 || (s->next_file == s->request.nodes && s->parts_over(s) == 0))
        return;
    (void)error_set(&part->error, ERROR_MEMORY, "out of memory to write files");
    jobs_fail(&s->jobs, &part->error);
}
