/* See storage.h. */
#include "tests/fuzz/storage.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

struct end { /* a source or a sink */
    union {
        struct source source;
        struct sink sink;
    };
    struct fuzz_storage *storage;
    struct slab_writer writer;
};

/* --- folders --- */

static uint64_t source_size(struct source *s, uint32_t destination)
{
    return 7 * destination;
}

static int source_read(struct source *base, uint32_t destination, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    struct end *s = (struct end *)base;

    REQUIRE(offset + most <= source_size(base, destination));
    memset(slab_writer_take(&s->writer, &s->storage->node->pool, most, out), 's', most);
    return 1;
}

static bool source_ready(struct source *s)
{
    return true;
}

static int source_lay_out(struct source *s, uint64_t round_bytes, uint32_t segments,
                          struct error *e)
{
    REQUIRE(round_bytes > 0 && segments > 0);
    return 0;
}

static bool source_close(struct source *base)
{
    struct end *s = (struct end *)base;

    s->storage->open_folders--;
    slab_writer_close(&s->writer);
    free(s);
    return true;
}

static bool sink_ready(struct sink *s)
{
    return true;
}

static int sink_lay_out(struct sink *s, uint64_t round_bytes, uint32_t segments, struct error *e)
{
    REQUIRE(round_bytes > 0 && segments > 0);
    return 0;
}

static int sink_write(struct sink *s, uint32_t origin, uint64_t offset, const struct extent *piece,
                      struct error *e)
{
    REQUIRE(origin < ((struct end *)s)->storage->node->torus.nodes);
    for (uint32_t i = 0; i < piece->length; i++) { /* all of it can be read */
        static volatile uint8_t sum;
        sum = (uint8_t)(sum + piece->data[i]);
    }
    return 0;
}

static uint64_t sink_none(struct sink *s)
{
    return 0;
}

/* Sometimes the target has appeared in the meantime. */
static int sink_commit(struct sink *base, struct error *e)
{
    const struct end *s = (struct end *)base;

    if (s->storage->node->random % 4 == 0)
        return error_set(e, ERROR_REFUSED, "target exists");
    return 1;
}

static bool sink_close(struct sink *base, bool keep)
{
    struct end *s = (struct end *)base;

    s->storage->open_folders--;
    free(s);
    return true;
}

static int open_folders(void *context, const struct folder_request *request,
                        const struct block_events *events, struct source **source,
                        struct sink **sink, struct error *e)
{
    static const struct source_ops source_ops = {.opened = source_ready,
                                                 .lay_out = source_lay_out,
                                                 .size = source_size,
                                                 .read = source_read,
                                                 .finish = source_ready,
                                                 .close = source_close};
    static const struct sink_ops sink_ops = {.opened = sink_ready,
                                             .lay_out = sink_lay_out,
                                             .write = sink_write,
                                             .pending = sink_none,
                                             .finish = sink_ready,
                                             .commit = sink_commit,
                                             .close = sink_close};
    struct fuzz_storage *all = context;
    struct end *from, *to;

    if (strcmp(request->from, "/refuse") == 0)
        return error_set(e, ERROR_REFUSED, "refused");
    from = calloc(1, sizeof *from);
    to = calloc(1, sizeof *to);
    REQUIRE(from != NULL && to != NULL);
    from->storage = to->storage = all;
    from->source = (struct source){.ops = &source_ops, .irregular = true};
    to->sink = (struct sink){&sink_ops, true, CHECK_NOTHING};
    all->open_folders += 2;
    *source = &from->source;
    *sink = &to->sink;
    return 0;
}

/* --- decisions --- */

static void begin_call(struct fuzz_storage *all, const char *id, storage_done_fn *done,
                       void *argument)
{
    struct fuzz_storage_call *call = &all->call[all->calls++];

    REQUIRE(all->calls <= FUZZ_STORAGE_CALLS);
    *call = (struct fuzz_storage_call){.done = done, .argument = argument};
    (void)snprintf(call->id, sizeof call->id, "%s", id);
}

static void record_commit(void *context, const char *id, storage_done_fn *done, void *argument)
{
    begin_call(context, id, done, argument);
}

static int each_committed(void *context, void (*each)(void *argument, const char *id),
                          void *argument, struct error *e)
{
    each(argument, "0-00000000-6");
    each(argument, "1-00000000-6");
    return 0;
}

static void forget_commit(void *context, const char *id)
{
}

static int each_in_doubt(void *context, void (*each)(void *argument, const char *id),
                         void *argument, struct error *e)
{
    each(argument, "1-00000000-7");
    return 0;
}

static void resolve(void *context, const char *id, bool committed, storage_done_fn *done,
                    void *argument)
{
    begin_call(context, id, done, argument);
}

void fuzz_storage_open(struct fuzz_storage *all, struct router_fixture *node)
{
    *all = (struct fuzz_storage){.storage = {.context = all,
                                             .open_folders = open_folders,
                                             .record_commit = record_commit,
                                             .each_committed = each_committed,
                                             .forget_commit = forget_commit,
                                             .each_in_doubt = each_in_doubt,
                                             .resolve = resolve},
                                 .node = node};
}

void fuzz_storage_run(struct fuzz_storage *all)
{
    const struct error failed = {.code = ERROR_IO, .text = "disk error"};

    while (all->calls > 0) {
        const struct fuzz_storage_call call = all->call[--all->calls];
        call.done(call.argument, call.id, all->node->random % 3 == 0 ? &failed : NULL);
    }
}
