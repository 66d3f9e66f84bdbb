/* See exchange_storage.h. */
#include "exchange_storage.h"

#include "tests/support/cmocka.h"

/* --- folders --- */

struct folders {
    struct source source;
    struct sink sink;
    struct exchange_fixture *node;
    struct folders *next;
    struct block_events events;
    bool source_open, sink_open;
    unsigned closing; /* closed() is still to come so many times */
    bool failed;
};

static struct folders *of_source(struct source *s)
{
    return (struct folders *)((char *)s - offsetof(struct folders, source));
}

static struct folders *of_sink(struct sink *s)
{
    return (struct folders *)((char *)s - offsetof(struct folders, sink));
}

static void free_closed(struct folders *folders)
{
    struct folders **at = &folders->node->folders;

    if (folders->source_open || folders->sink_open || folders->closing > 0)
        return;
    while (*at != folders)
        at = &(*at)->next;
    *at = folders->next;
    free(folders);
}

static bool close_half(struct folders *folders)
{
    bool at_once = folders->node->closes_at_once;

    folders->closing += !at_once;
    free_closed(folders);
    return at_once;
}

static bool source_opened(struct source *s)
{
    return of_source(s)->node->opened;
}

static int source_lay_out(struct source *s, uint64_t round_bytes, uint32_t segments,
                          struct error *e)
{
    assert_true(round_bytes > 0 && segments > 0);
    return 0;
}

static uint64_t source_size(struct source *s, uint32_t destination)
{
    assert_true(destination < of_source(s)->node->f.torus.nodes);
    return 0;
}

static int source_read(struct source *s, uint32_t destination, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    fail_msg("an empty block is read");
    return -1;
}

static bool source_finish(struct source *s)
{
    return true;
}

static bool source_close(struct source *s)
{
    assert_true(of_source(s)->source_open);
    of_source(s)->source_open = false;
    return close_half(of_source(s));
}

static bool sink_opened(struct sink *s)
{
    return of_sink(s)->node->opened;
}

static int sink_lay_out(struct sink *s, uint64_t round_bytes, uint32_t segments, struct error *e)
{
    assert_true(round_bytes > 0 && segments > 0);
    return 0;
}

static int sink_write(struct sink *s, uint32_t origin, uint64_t offset, const struct extent *piece,
                      struct error *e)
{
    assert_int_equal(piece->length, 0);
    return 0;
}

static uint64_t sink_none(struct sink *s)
{
    return 0;
}

static bool sink_finish(struct sink *s)
{
    return of_sink(s)->node->written;
}

static int sink_commit(struct sink *s, struct error *e)
{
    struct exchange_fixture *n = of_sink(s)->node;

    if (n->commit < 0)
        return error_set(e, ERROR_REFUSED, "target exists");
    n->commits += n->commit > 0;
    return n->commit;
}

static bool sink_close(struct sink *s, bool keep)
{
    struct folders *folders = of_sink(s);

    assert_true(folders->sink_open);
    folders->sink_open = false;
    if (keep)
        folders->node->kept++;
    else
        folders->node->removed++;
    return close_half(folders);
}

static int open_folders(void *context, const struct folder_request *request,
                        const struct block_events *events, struct source **source,
                        struct sink **sink, struct error *e)
{
    static const struct source_ops source_ops = {.opened = source_opened,
                                                 .lay_out = source_lay_out,
                                                 .size = source_size,
                                                 .read = source_read,
                                                 .finish = source_finish,
                                                 .close = source_close};
    static const struct sink_ops sink_ops = {.opened = sink_opened,
                                             .lay_out = sink_lay_out,
                                             .write = sink_write,
                                             .pending = sink_none,
                                             .finish = sink_finish,
                                             .commit = sink_commit,
                                             .close = sink_close};
    struct exchange_fixture *n = context;
    struct folders *folders = calloc(1, sizeof *folders);

    if (folders == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for folders");
    folders->source = (struct source){.ops = &source_ops, .sized = true};
    folders->sink = (struct sink){&sink_ops, true, CHECK_DIGEST};
    folders->node = n;
    folders->events = *events;
    folders->source_open = folders->sink_open = true;
    folders->next = n->folders;
    n->folders = folders;
    *source = &folders->source;
    *sink = &folders->sink;
    return 0;
}

/* --- decisions --- */

static void begin_call(struct exchange_fixture *n, const char *id, bool resolves, bool committed,
                       storage_done_fn *done, void *argument)
{
    struct storage_call *call = &n->call[n->calls++];

    assert_true(n->calls <= EXCHANGE_FIXTURE_CALLS);
    *call = (struct storage_call){
        .resolves = resolves, .committed = committed, .done = done, .argument = argument};
    (void)snprintf(call->id, sizeof call->id, "%s", id);
}

static void record_commit(void *context, const char *id, storage_done_fn *done, void *argument)
{
    begin_call(context, id, false, true, done, argument);
}

static void resolve(void *context, const char *id, bool committed, storage_done_fn *done,
                    void *argument)
{
    begin_call(context, id, true, committed, done, argument);
}

static void forget_commit(void *context, const char *id)
{
    ((struct exchange_fixture *)context)->forgotten++;
}

static void name_each(const char *const *ids, void (*each)(void *argument, const char *id),
                      void *argument)
{
    for (; ids != NULL && *ids != NULL; ids++)
        each(argument, *ids);
}

static int each_committed(void *context, void (*each)(void *argument, const char *id),
                          void *argument, struct error *e)
{
    name_each(((struct exchange_fixture *)context)->on_record, each, argument);
    return 0;
}

static int each_in_doubt(void *context, void (*each)(void *argument, const char *id),
                         void *argument, struct error *e)
{
    name_each(((struct exchange_fixture *)context)->in_doubt, each, argument);
    return 0;
}

struct storage exchange_storage(struct exchange_fixture *n)
{
    return (struct storage){.context = n,
                            .open_folders = open_folders,
                            .record_commit = record_commit,
                            .forget_commit = forget_commit,
                            .each_committed = each_committed,
                            .each_in_doubt = each_in_doubt,
                            .resolve = resolve};
}

/* --- events of folders and decisions --- */

void exchange_storage_wake(struct exchange_fixture *n)
{
    struct folders *next;

    for (struct folders *folders = n->folders; folders != NULL; folders = next) {
        next = folders->next;
        if (folders->source_open && folders->sink_open)
            folders->events.wake(folders->events.context);
    }
}

void exchange_storage_fail(struct exchange_fixture *n, enum error_code code, const char *text)
{
    struct folders *folders = n->folders;
    struct error e;

    assert_non_null(folders);
    assert_true(folders->source_open && !folders->failed);
    folders->failed = true;
    (void)error_set(&e, code, "%s", text);
    folders->events.failed(folders->events.context, &e);
}

void exchange_storage_closed(struct exchange_fixture *n)
{
    struct folders *next;

    for (struct folders *folders = n->folders; folders != NULL; folders = next) {
        struct block_events events = folders->events;
        next = folders->next;
        unsigned closing = folders->closing;
        folders->closing = 0;
        free_closed(folders);
        while (closing-- > 0)
            events.closed(events.context);
    }
}

void exchange_storage_done(struct exchange_fixture *n, const struct error *e)
{
    struct storage_call call = n->call[0];

    assert_true(n->calls > 0);
    memmove(&n->call[0], &n->call[1], --n->calls * sizeof n->call[0]);
    call.done(call.argument, call.id, e);
}
