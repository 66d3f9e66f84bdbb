#include "tree_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

int trees_setup(void **state)
{
    struct trees *t = calloc(1, sizeof *t);
    struct error e = {0};
    void *folder;

    if (t == NULL || folder_setup(&folder) != 0)
        return -1;
    t->folder = folder;
    make_folder(at(&folder, "data"));
    make_folder(at(&folder, "state"));
    if (roots_add(&t->roots, file_system_posix(), at(&folder, "data"), &e) != 0)
        return -1;
    static char state_folder[FIXTURE_PATH];
    (void)snprintf(state_folder, sizeof state_folder, "%s", at(&folder, "state"));
    tree_files_init(&t->files, state_folder, &t->roots);
    t->store = tree_files_store(&t->files);
    *state = t;
    return 0;
}

int trees_teardown(void **state)
{
    struct trees *t = *state;
    void *folder = t->folder;
    bool unused = tree_files_are_unused(&t->files);
    unsigned left = entries(at(&folder, "state"));

    tree_files_free(&t->files);
    roots_free(&t->roots);
    free(t);
    return folder_teardown(&folder) != 0 || !unused || left > 0;
}

const char *data_at(void **state, const char *name, ...)
{
    struct trees *t = *state;
    void *folder = t->folder;
    char below[FIXTURE_PATH];
    va_list ap;

    va_start(ap, name);
    (void)vsnprintf(below, sizeof below, name, ap);
    va_end(ap);
    return at(&folder, "data/%s", below);
}

void make_tree(void **state, const char *const *names)
{
    for (; *names != NULL; names++) {
        size_t length = strlen(*names);
        if ((*names)[length - 1] == '/')
            make_folder(data_at(state, "%s", *names));
        else
            make_file(data_at(state, "%s", *names), *names, length);
    }
}

struct tree_reader *open_reader(void **state, const struct tree_read_options *options)
{
    struct trees *t = *state;
    struct tree_reader *r;
    struct error e = {0};

    if (t->store->read_open(t->store->context, options, NULL, &r, &e) != 0)
        fail_msg("%s", e.text);
    return r;
}

struct tree_reader *open_reader_of(void **state, const char *name)
{
    const char *path = data_at(state, "%s", name);

    return open_reader(state, &(struct tree_read_options){.path = &path, .paths = 1});
}

void check_open_fails(void **state, const struct tree_read_options *options, enum error_code code,
                      const char *text)
{
    struct trees *t = *state;
    struct tree_reader *r;
    struct error e = {0};

    assert_int_equal(t->store->read_open(t->store->context, options, NULL, &r, &e), -1);
    if (e.code != code || strstr(e.text, text) == NULL)
        fail_msg("%s: %s", error_name(e.code), e.text);
}

int document_of(void **state, struct tree_reader *r, enum tree_document which, uint64_t *size)
{
    struct trees *t = *state;
    struct error e = {0};
    int file = memory_file();

    *size = t->store->facts(r).size[which];
    uint8_t *bytes = malloc(*size);
    assert_non_null(bytes);
    for (uint64_t at_byte = 0; at_byte < *size;) {
        size_t length = *size - at_byte < 1000 ? (size_t)(*size - at_byte) : 1000;
        assert_int_equal(t->store->read_document(r, which, at_byte, bytes + at_byte, length, &e),
                         0);
        at_byte += length;
    }
    assert_int_equal(t->store->read_document(r, which, *size - 1, bytes, 2, &e), -1);
    assert_int_equal(write(file, bytes, *size), *size);
    free(bytes);
    return file;
}

int manifest_of(void **state, struct tree_reader *r, struct manifest *m)
{
    struct trees *t = *state;
    struct error e = {0};
    uint64_t size;
    int file = document_of(state, r, TREE_MANIFEST, &size);

    assert_success(manifest_open(m, file, size, &e), e);
    assert_int_equal(m->stream, t->store->facts(r).stream);
    return file;
}

void check_paths(void **state, struct tree_reader *r, const char *const *paths)
{
    static const char mark[] = {
        [ENTRY_FOLDER] = '/', [ENTRY_SYMLINK] = '@', [ENTRY_HARDLINK] = '='};
    struct manifest m;
    struct entry entry;
    struct error e = {0};
    char marked[MANIFEST_PATH_MOST + 2];
    int file = manifest_of(state, r, &m);
    struct manifest_cursor *c = manifest_cursor_new(&m);

    for (; manifest_next(c, &entry, &e) == 1; paths++) {
        (void)snprintf(marked, sizeof marked, "%s%c", entry.path, mark[entry.kind]);
        if (*paths == NULL)
            fail_msg("%s should not be there", marked);
        assert_string_equal(marked, *paths);
    }
    if (*paths != NULL)
        fail_msg("%s is missing", *paths);
    manifest_cursor_free(c);
    (void)close(file);
}

struct entry entry_at(struct manifest_cursor *c, const char *path)
{
    struct entry entry;
    struct error e = {0};

    assert_int_equal(manifest_seek_index(c, 0, &e), 0);
    while (manifest_next(c, &entry, &e) == 1)
        if (strcmp(entry.path, path) == 0)
            return entry;
    fail_msg("%s is missing", path);
    return entry;
}

unsigned descriptors(void)
{
    return entries("/proc/self/fd");
}
