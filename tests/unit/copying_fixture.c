#include "copying_fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>

#include "tests/support/cmocka.h"

static unsigned long open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned long count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    (void)closedir(folder);
    return count;
}

void copying_open(struct copying *c, void **state)
{
    struct error e;

    *c = (struct copying){.descriptors = open_descriptors()};
    if (!exists(at(state, "data"))) {
        make_folder(at(state, "data"));
        make_folder(at(state, "state"));
    }
    assert_int_equal(roots_add(&c->roots, file_system_posix(), at(state, "data"), &e), 0);
    (void)strcpy(c->state_folder, at(state, "state"));
    tree_files_init(&c->files, c->state_folder, &c->roots);
    assert_int_equal(tree_files_open(&c->files, &e), 0);
    c->store = tree_files_store(&c->files);
}

void copying_close(struct copying *c)
{
    assert_true(tree_files_are_unused(&c->files));
    tree_files_free(&c->files);
    roots_free(&c->roots);
    assert_int_equal(open_descriptors(), c->descriptors);
}

/* --- one copy --- */

struct run {
    struct copying *c;
    const struct how *how;
    struct copied *result;
    struct tree_reader *r;
    struct tree_writer *w;
    struct tree_progress own_progress, *progress;
    struct interval *piece;
    size_t pieces;
    atomic_size_t next;
    atomic_ulong moved;
    atomic_bool failed;
    pthread_mutex_t lock; /* of the error */
};

static int pass_document(struct run *u, enum tree_document which, struct error *e)
{
    const struct tree_store *store = u->c->store;
    uint64_t size = store->facts(u->r).size[which], at = 0;
    uint8_t bytes[1000];

    while (at < size) {
        size_t length = size - at < sizeof bytes ? (size_t)(size - at) : sizeof bytes;
        assert_int_equal(store->read_document(u->r, which, at, bytes, length, e), 0);
        if (store->write_document(u->w, which, bytes, length, e) != 0)
            return -1;
        at += length;
    }
    return 0;
}

static int open_both(struct run *u, struct error *e)
{
    const struct tree_store *store = u->c->store;
    struct tree_read_options read = u->how->read;
    struct tree_write_options write = u->how->write;
    const char *const path[] = {u->how->from};

    if (u->how->from != NULL) {
        read.path = path;
        read.paths = 1;
    }
    read.into = write.into;
    read.pattern = write.pattern;
    read.patterns = write.patterns;
    read.digests = write.checksum;
    read.skip_changing = write.skip_changing;
    read.fast_digests = u->how->seed % 2 == 0;
    if (u->how->to != NULL)
        write.path = u->how->to;
    write.id = "test";
    if (store->read_open(store->context, &read, u->progress, &u->r, e) != 0)
        return u->r = NULL, -1;
    if (store->write_open(store->context, &write, &u->w, e) != 0)
        return u->w = NULL, -1;
    return 0;
}

/* Cuts the missing ranges into pieces. */
static int find_pieces(struct run *u, struct error *e)
{
    const struct tree_store *store = u->c->store;
    const struct interval *span;
    uint32_t spans;
    uint64_t size = u->how->piece != 0 ? u->how->piece : 100000, left = u->how->stop_after;

    if (store->missing(u->w, u->how->most != 0 ? u->how->most : 64, u->progress, &span, &spans,
                       e) != 0)
        return -1;
    assert_in_range(spans, 0, u->how->most != 0 ? u->how->most : 64);
    u->result->spans = spans;
    const struct interval stream = {0, store->facts(u->r).stream};
    if (u->how->everything && stream.end > 0) {
        span = &stream;
        spans = 1;
    }
    for (uint32_t i = 0; i < spans; i++) {
        assert_true(span[i].begin < span[i].end && span[i].end <= store->facts(u->r).stream);
        assert_true(i == 0 || span[i - 1].end < span[i].begin);
        for (uint64_t at = span[i].begin; at < span[i].end; at += size) {
            uint64_t end = at + size < span[i].end ? at + size : span[i].end;
            if (u->how->stop_after != 0 && left == 0)
                return 0;
            if (u->how->stop_after != 0 && end - at > left)
                end = at + left;
            left -= end - at;
            u->piece = reallocarray(u->piece, u->pieces + 1, sizeof *u->piece);
            u->piece[u->pieces++] = (struct interval){at, end};
        }
    }
    for (size_t i = u->pieces; u->how->seed != 0 && i > 1; i--) {
        size_t other = (size_t)random() % i;
        struct interval swapped = u->piece[i - 1];
        u->piece[i - 1] = u->piece[other];
        u->piece[other] = swapped;
    }
    return 0;
}

static void *move_pieces(void *context)
{
    struct run *u = context;
    const struct tree_store *store = u->c->store;
    size_t i;

    while ((i = atomic_fetch_add(&u->next, 1)) < u->pieces && !atomic_load(&u->failed)) {
        struct interval span = u->piece[i];
        size_t length = (size_t)(span.end - span.begin);
        uint8_t *bytes = malloc(length);
        struct error e;
        if (store->read(u->r, span.begin, bytes, length, &e) != 0 ||
            store->write(u->w, span.begin, bytes, length, &e) != 0) {
            (void)pthread_mutex_lock(&u->lock);
            if (!atomic_exchange(&u->failed, true))
                u->result->error = e;
            (void)pthread_mutex_unlock(&u->lock);
        } else {
            (void)atomic_fetch_add(&u->moved, length);
        }
        free(bytes);
    }
    return NULL;
}

static int move_all(struct run *u)
{
    pthread_t thread[8];

    for (unsigned i = 0; i < u->how->threads; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, move_pieces, u), 0);
    (void)move_pieces(u);
    for (unsigned i = 0; i < u->how->threads; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    u->result->moved = atomic_load(&u->moved);
    return atomic_load(&u->failed) ? -1 : 0;
}

/* Passes on which files have changed. */
static int leave_changed(struct run *u, struct error *e)
{
    const struct tree_facts facts = u->c->store->facts(u->r);

    if (!u->how->write.skip_changing)
        return 0;
    u->result->changed = facts.changes;
    return u->c->store->leave(u->w, facts.changed, facts.changes, e);
}

static int run_all(struct run *u)
{
    const struct tree_store *store = u->c->store;
    struct error *e = &u->result->error;
    const uint8_t *wanted;
    size_t length;

    if (open_both(u, e) != 0 || pass_document(u, TREE_MANIFEST, e) != 0 ||
        store->compare(u->w, u->progress, &wanted, &length, e) != 0)
        return -1;
    if (length > 0) {
        assert_int_equal(store->digest(u->r, &wanted, &length, 1, u->progress, e), 0);
        if (pass_document(u, TREE_DIGESTS, e) != 0)
            return -1;
    }
    if (find_pieces(u, e) != 0)
        return -1;
    if (u->how->before_read != NULL)
        u->how->before_read(u->how->argument);
    if (!u->how->write.look_only && move_all(u) != 0)
        return -1;
    store->report(u->w, &u->result->report);
    if (u->how->stop_after != 0 || u->how->no_finish)
        return 0;
    if (u->how->before_check != NULL)
        u->how->before_check(u->how->argument);
    if (store->check(u->r, u->progress, e) != 0 || leave_changed(u, e) != 0)
        return -1;
    if (u->how->before_finish != NULL)
        u->how->before_finish(u->how->argument);
    int code = store->finish(u->w, u->progress, e);
    store->report(u->w, &u->result->report);
    return code;
}

int copying_run(struct copying *c, const struct how *by, struct copied *to)
{
    struct run u = {.c = c, .how = by, .result = to};

    u.progress = by->progress != NULL ? by->progress : &u.own_progress;
    *to = (struct copied){0};
    (void)pthread_mutex_init(&u.lock, NULL);
    if (by->seed != 0)
        srandom(by->seed);
    int code = run_all(&u);
    if (u.w != NULL)
        c->store->write_close(u.w);
    if (u.r != NULL)
        c->store->read_close(u.r);
    free(u.piece);
    (void)pthread_mutex_destroy(&u.lock);
    return code;
}

uint64_t copying_well(struct copying *c, const char *from, const char *to)
{
    struct how paths = {.from = from, .to = to};
    struct copied done;

    if (copying_run(c, &paths, &done) != 0)
        fail_msg("%s", done.error.text);
    return done.moved;
}

/* --- tests with one copy after another --- */

struct copying copying;
struct how how;
struct copied result;

int copying_setup(void **state)
{
    static char from[FIXTURE_PATH], to[FIXTURE_PATH];

    if (folder_setup(state) != 0)
        return -1;
    copying_open(&copying, state);
    (void)strcpy(from, at(state, "data/from"));
    (void)strcpy(to, at(state, "data/to"));
    how = (struct how){.from = from, .to = to};
    return 0;
}

int copying_teardown(void **state)
{
    copying_close(&copying);
    return folder_teardown(state);
}

void start_anew(void **state)
{
    assert_int_equal(copying_teardown(state) + copying_setup(state), 0);
}

int copy(void)
{
    return copying_run(&copying, &how, &result);
}

void copy_well(void)
{
    if (copy() != 0)
        fail_msg("%s", result.error.text);
}

void copy_refused(enum error_code code, const char *text)
{
    assert_fails(copy(), result.error, code, text);
}
