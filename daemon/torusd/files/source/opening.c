#include "daemon/torusd/files/source/opening.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/files/source/source_file.h"

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
    struct place place;
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

void source_step_over(struct folder_source *s, enum source_state state)
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

    return folder_is_gone(&s->request, destination) ? 0 : source_file_mark(&s->file[destination]);
}
