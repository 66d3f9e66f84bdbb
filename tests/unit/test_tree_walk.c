/* Walks: everything in a tree becomes an entry, as it is; what cannot be read is an error that names it. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "daemon/torusd/tree/walk.h"
#include "tests/support/cmocka.h"
#include "tree_fixture.h"

static void close_reader(void **state, struct tree_reader *r)
{
    ((struct trees *)*state)->store->read_close(r);
}

TREES_TEST(names_may_have_any_bytes_and_are_in_order)
{
    static const char *const names[] = {"t/",    "t/a/",     "t/a-b",  "t/a.b",
                                        "t/a/b", "t/a/b\n",  "t/\x01", "t/\xff\xfe",
                                        "t/ä",   "t/empty/", "t/-",    NULL};
    static const char *const paths[] = {"/",   "\x01", "-",      "a/", "a/b",      "a/b\n",
                                        "a-b", "a.b",  "empty/", "ä",  "\xff\xfe", NULL};
    make_tree(state, names);
    struct tree_reader *r = open_reader_of(state, "t");
    check_paths(state, r, paths);
    close_reader(state, r);
}

TREES_TEST(entries_say_what_the_disk_says)
{
    static const char *const names[] = {"t/", "t/f", "t/x", "t/z/", NULL};
    static const char *const paths[] = {"/", "f", "hard=", "l@", "sparse", "x", "z/", NULL};
    struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = -77, .tv_nsec = 123456789}};
    struct manifest m;
    make_tree(state, names);
    assert_int_equal(chmod(data_at(state, "t/x"), 06751), 0);
    assert_int_equal(chmod(data_at(state, "t/z"), 01777), 0);
    assert_int_equal(utimensat(AT_FDCWD, data_at(state, "t/x"), times, 0), 0);
    assert_int_equal(symlink("../nowhere\n", data_at(state, "t/l")), 0);
    assert_int_equal(link(data_at(state, "t/f"), data_at(state, "t/hard")), 0);
    int sparse = open(data_at(state, "t/sparse"), O_CREAT | O_WRONLY, 0600);
    assert_int_equal(pwrite(sparse, "data", 4, 1 << 20), 4);
    assert_int_equal(ftruncate(sparse, 300 << 20), 0);
    (void)close(sparse);
    struct tree_reader *r = open_reader_of(state, "t");
    check_paths(state, r, paths);
    int file = manifest_of(state, r, &m);
    struct manifest_cursor *c = manifest_cursor_new(&m);
    struct entry entry = entry_at(c, "x");
    assert_int_equal(entry.mode, 06751);
    assert_int_equal(entry.owner, geteuid());
    assert_int_equal(entry.modified.tv_sec, -77);
    assert_int_equal(entry.modified.tv_nsec, 123456789);
    assert_int_equal(entry.size, 3);
    assert_false(entry.has_digest);
    assert_int_equal(entry_at(c, "z").mode, 01777);
    entry = entry_at(c, "l");
    assert_string_equal(entry.link, "../nowhere\n");
    entry = entry_at(c, "hard");
    assert_string_equal(entry.link, "f");
    assert_int_equal(entry.linked, 1);
    entry = entry_at(c, "sparse");
    assert_int_equal(entry.size, 300 << 20);
    assert_int_equal(entry.extents, 1);
    assert_in_range(entry.bytes, 4, 1 << 20);
    manifest_cursor_free(c);
    (void)close(file);
    close_reader(state, r);
}

TREES_TEST(a_file_that_is_a_hole_has_no_data)
{
    struct manifest m;
    struct error e = {0};
    struct entry entry;
    int hole = open(data_at(state, "h"), O_CREAT | O_WRONLY, 0600);
    assert_int_equal(ftruncate(hole, 1 << 30), 0);
    (void)close(hole);
    struct tree_reader *r = open_reader_of(state, "h");
    int file = manifest_of(state, r, &m);
    struct manifest_cursor *c = manifest_cursor_new(&m);
    assert_int_equal(manifest_next(c, &entry, &e), 1);
    assert_int_equal(m.stream, 0);
    assert_string_equal(entry.path, "");
    assert_int_equal(entry.size, 1 << 30);
    assert_non_null(entry.extent);
    manifest_cursor_free(c);
    (void)close(file);
    close_reader(state, r);
}

TREES_TEST(attributes_are_read_in_order)
{
    static const char *const names[] = {"t/", "t/f", "t/g", NULL};
    static const uint8_t expected[] = "user.a\0\1\0\0\0Auser.b\0\0\0\0"; /* with the last 0 */
    static char large[40000];
    struct manifest m;
    make_tree(state, names);
    if (setxattr(data_at(state, "t/f"), "user.b", "", 0, 0) != 0)
        skip(); /* a file system without attributes */
    assert_int_equal(setxattr(data_at(state, "t/f"), "user.a", "A", 1, 0), 0);
    assert_int_equal(setxattr(data_at(state, "t"), "user.a", "A", 1, 0), 0);
    struct tree_reader *r = open_reader_of(state, "t");
    int file = manifest_of(state, r, &m);
    struct manifest_cursor *c = manifest_cursor_new(&m);
    struct entry entry = entry_at(c, "f");
    assert_int_equal(entry.attributes_length, sizeof expected);
    assert_memory_equal(entry.attributes, expected, sizeof expected);
    assert_int_equal(entry_at(c, "g").attributes_length, 0);
    entry = entry_at(c, "");
    assert_int_equal(entry.attributes_length, 12);
    manifest_cursor_free(c);
    (void)close(file);
    close_reader(state, r);
    /* More than a manifest can hold. */
    const char *path = data_at(state, "t");
    const struct tree_read_options options = {.path = &path, .paths = 1};
    if (setxattr(data_at(state, "t/g"), "user.1", large, sizeof large, 0) == 0 &&
        setxattr(data_at(state, "t/g"), "user.2", large, sizeof large, 0) == 0)
        check_open_fails(state, &options, ERROR_REFUSED, "t/g has more than");
}

TREES_TEST(what_cannot_be_copied_is_counted)
{
    static const char *const names[] = {"t/", "t/f", NULL}, *const paths[] = {"/", "f", NULL};
    struct trees *t = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *first;
    make_tree(state, names);
    struct tree_reader *r = open_reader_of(state, "t");
    assert_int_equal(t->store->left_out(r, &first), 0);
    assert_string_equal(first, "");
    close_reader(state, r);
    assert_int_equal(mkfifo(data_at(state, "t/a\n"), 0600), 0);
    assert_true((size_t)snprintf(address.sun_path, sizeof address.sun_path, "%s",
                                 data_at(state, "t/s")) < sizeof address.sun_path);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(s, (struct sockaddr *)&address, sizeof address), 0);
    (void)close(s);
    r = open_reader_of(state, "t");
    assert_int_equal(t->store->left_out(r, &first), 2);
    assert_string_equal(first, data_at(state, "t/a?"));
    check_paths(state, r, paths);
    close_reader(state, r);
}

TREES_TEST(patterns_leave_names_out)
{
    static const char *const names[] = {"t/",     "t/a.o",   "t/k/",     "t/k/b.o", "t/k/c",
                                        "t/tmp/", "t/tmp/x", "t/keep.o", "t/k/tmp", NULL};
    static const char *const paths[] = {"t/", "t/k/", "t/k/c", "t/k/tmp", "t/keep.o", NULL};
    static const char *const pattern[] = {"+ keep.o", "- *.o", "- tmp/"};
    const char *path = data_at(state, "t/");
    make_tree(state, names);
    struct tree_reader *r = open_reader(
        state, &(struct tree_read_options){
                   .path = &path, .paths = 1, .into = true, .pattern = pattern, .patterns = 3});
    check_paths(state, r, paths);
    close_reader(state, r);
    static const char *const wrong[] = {"*.o"};
    check_open_fails(
        state,
        &(struct tree_read_options){.path = &path, .paths = 1, .pattern = wrong, .patterns = 1},
        ERROR_USAGE, "no pattern");
}

TREES_TEST(what_copies_have_left_is_no_content)
{
    static const char *const names[] = {"t/",
                                        "t/.torus-copy/",
                                        "t/.torus-copy/f",
                                        "t/k/",
                                        "t/k/.x.torus-copy/",
                                        "t/k/.x.torus-copy/f",
                                        "t/x.torus-copy",
                                        NULL};
    static const char *const paths[] = {"/", "k/", "x.torus-copy", NULL};
    static const char *const within[] = {"t/.torus-copy", "t/.torus-copy/f"};
    const char *first;
    make_tree(state, names);
    struct tree_reader *r = open_reader_of(state, "t");
    check_paths(state, r, paths);
    assert_int_equal(((struct trees *)*state)->store->left_out(r, &first), 0);
    close_reader(state, r);
    for (unsigned i = 0; i < 4; i++) {
        const char *path = data_at(state, "%s", within[i / 2]);
        const struct tree_read_options options = {.path = &path, .paths = 1, .into = i % 2 == 0};
        check_open_fails(state, &options, ERROR_REFUSED, "name another source");
    }
}

TREES_TEST(several_sources_keep_their_names)
{
    static const char *const names[] = {"t/", "t/f", "u/", "u/t", "a", NULL};
    static const char *const paths[] = {"a", "t/", "t/f", "u/", "u/t", NULL};
    const char *path[] = {data_at(state, "u"), data_at(state, "./t//"), data_at(state, "a")};
    struct tree_read_options options = {.path = path, .paths = 3, .into = true};
    make_tree(state, names);
    struct tree_reader *r = open_reader(state, &options);
    check_paths(state, r, paths);
    close_reader(state, r);
    path[2] = data_at(state, "u/t");
    check_open_fails(state, &options, ERROR_USAGE, "the same name");
    path[2] = data_at(state, "u/.");
    check_open_fails(state, &options, ERROR_USAGE, "does not end with a name");
    options.into = false;
    check_open_fails(state, &options, ERROR_USAGE, "one source");
}

TREES_TEST(missing_and_foreign_sources_are_errors)
{
    static const char *const none[] = {NULL};
    const char *path = data_at(state, "missing");
    struct tree_read_options options = {.path = &path, .paths = 1};
    check_open_fails(state, &options, ERROR_REFUSED, "missing");
    options.missing_ok = true;
    struct tree_reader *r = open_reader(state, &options);
    check_paths(state, r, none);
    close_reader(state, r);
    path = "/etc";
    check_open_fails(state, &options, ERROR_REFUSED, "data_roots");
    assert_int_equal(symlink("/etc", data_at(state, "link")), 0);
    path = data_at(state, "link");
    check_open_fails(state, &options, ERROR_REFUSED, "data_roots");
    assert_int_equal(mkfifo(data_at(state, "fifo"), 0600), 0);
    path = data_at(state, "fifo");
    check_open_fails(state, &options, ERROR_REFUSED, "neither a file nor a folder");
}

/* A source may be a link, but links below it are not followed. */
TREES_TEST(links_lead_to_sources_only)
{
    static const char *const names[] = {"t/", "t/f", NULL};
    static const char *const paths[] = {"s/", "s/f", "s/up@", NULL};
    make_tree(state, names);
    assert_int_equal(symlink("..", data_at(state, "t/up")), 0);
    assert_int_equal(symlink("t", data_at(state, "s")), 0);
    const char *path = data_at(state, "s");
    struct tree_reader *r =
        open_reader(state, &(struct tree_read_options){.path = &path, .paths = 1, .into = true});
    check_paths(state, r, paths);
    close_reader(state, r);
}

static void make_deep(void **state, unsigned depth)
{
    char path[400] = "t";

    make_folder(data_at(state, "t"));
    for (unsigned i = 0; i < depth; i++) {
        make_file(data_at(state, "%s/z", path), "z", 1);
        (void)strcat(path, "/d");
        make_folder(data_at(state, "%s", path));
    }
}

/* Deeper than folders stay open, with files behind each inner folder. */
TREES_TEST(deep_trees_need_few_descriptors)
{
    struct rlimit limit, low;
    unsigned depth = 3 * WALK_FOLDERS_OPEN;
    struct manifest m;
    make_deep(state, depth);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = descriptors() + WALK_FOLDERS_OPEN + 10;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    struct tree_reader *r = open_reader_of(state, "t");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int file = manifest_of(state, r, &m);
    assert_int_equal(m.folders, depth + 1);
    assert_int_equal(m.files, depth);
    walk_through(&m);
    (void)close(file);
    close_reader(state, r);
}

/* Other folders with the same names. */
static void swap_folders(void *argument)
{
    void **state = argument;

    assert_int_equal(rename(data_at(state, "t/d"), data_at(state, "moved")), 0);
    assert_int_equal(rename(data_at(state, "other"), data_at(state, "t/d")), 0);
}

TREES_TEST(folders_that_are_opened_again_are_the_same)
{
    static const char *const others[] = {"other/",       "other/d/",       "other/d/d/",
                                         "other/d/d/d/", "other/d/d/d/d/", NULL};
    struct trees *t = *state;
    struct faulty_files faulty;
    struct roots roots = {0};
    struct error e = {0};
    make_tree(state, others);
    make_deep(state, WALK_FOLDERS_OPEN + 2);
    const char *path = data_at(state, "t"); /* the buffers of the fixture are few */
    faulty_files_init(&faulty);
    assert_int_equal(roots_add(&roots, &faulty.files, data_at(state, "."), &e), 0);
    atomic_store(&t->files.roots, &roots);
    faulty.left = 2; /* after the source was opened, and its state read */
    faulty.before = swap_folders;
    faulty.argument = state;
    check_open_fails(state, &(struct tree_read_options){.path = &path, .paths = 1}, ERROR_IO,
                     "d was changed");
    assert_string_equal(faulty.call, "open_folder");
    atomic_store(&t->files.roots, &t->roots);
    roots_free(&roots);
}

TREES_TEST(paths_that_are_too_long_are_named)
{
    char name[NAME_MAX + 1];
    const char *path = data_at(state, "t");
    memset(name, 'n', NAME_MAX);
    name[NAME_MAX] = '\0';
    make_folder(path);
    int folder = open(path, O_RDONLY | O_DIRECTORY);
    for (unsigned i = 0; i < 17; i++) {
        assert_int_equal(mkdirat(folder, name, 0700), 0);
        int inner = openat(folder, name, O_RDONLY | O_DIRECTORY);
        (void)close(folder);
        folder = inner;
    }
    (void)close(folder);
    check_open_fails(state, &(struct tree_read_options){.path = &path, .paths = 1}, ERROR_REFUSED,
                     "longer than 4095 bytes");
    /* The fixture cannot remove such a path. */
    char command[FIXTURE_PATH + 20];
    (void)snprintf(command, sizeof command, "rm -r %s", path);
    assert_int_equal(system(command), 0);
}

TREES_TEST(what_cannot_be_read_is_named)
{
    static const char *const names[] = {"t/", "t/open", "t/secret", "t/shut/", NULL};
    struct trees *t = *state;
    void *folder = t->folder;
    const char *path = data_at(state, "t");
    static const char *const pattern[] = {"- secret"};
    struct tree_read_options options = {.path = &path, .paths = 1};
    bool root = geteuid() == 0;
    make_tree(state, names);
    assert_int_equal(chmod(data_at(state, "t/secret"), 0), 0);
    assert_int_equal(chmod(data_at(state, "t/shut"), 0), 0);
    assert_int_equal(chmod(t->folder, 0755), 0);
    assert_int_equal(chmod(at(&folder, "state"), 0777), 0);
    assert_true(!root || seteuid(65534) == 0);
    check_open_fails(state, &options, ERROR_REFUSED, "t/secret cannot be read");
    options.pattern = pattern;
    options.patterns = 1;
    check_open_fails(state, &options, ERROR_REFUSED, "t/shut cannot be read");
    assert_true(!root || seteuid(0) == 0);
    assert_int_equal(chmod(data_at(state, "t/shut"), 0700), 0);
}

TREES_TEST(a_walk_ends_when_it_shall)
{
    static const char *const names[] = {"t/", "t/f", NULL};
    struct trees *t = *state;
    struct tree_progress progress = {.stop = true};
    const char *path = data_at(state, "t");
    struct tree_read_options options = {.path = &path, .paths = 1};
    struct tree_reader *r;
    struct error e = {0};
    make_tree(state, names);
    assert_int_equal(t->store->read_open(t->store->context, &options, &progress, &r, &e), -1);
    assert_int_equal(e.code, ERROR_CANCELLED);
    progress.stop = false;
    progress.files = 0;
    assert_int_equal(t->store->read_open(t->store->context, &options, &progress, &r, &e), 0);
    assert_int_equal(progress.files, 2);
    close_reader(state, r);
}
