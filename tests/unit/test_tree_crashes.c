/* The daemon ends between any two steps of the end of a copy: files have old or new contents meanwhile, and the next start
 * or the next copy completes it. A step is a call that changes names or metadata; CMakeLists.txt wraps these. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "copying_fixture.h"
#include "daemon/torusd/tree/tree_files.h"
#include "tests/support/cmocka.h"

static long left = -1; /* steps until the process ends; negative: it does not */
static bool fails;     /* that step fails with EIO instead */

static unsigned synced; /* files, one by one */

static atomic_bool *stop_at_sync; /* of a copy; NULL: none is stopped */

static bool step(void)
{
    if (left < 0 || left-- > 0)
        return false;
    if (!fails)
        (void)raise(SIGKILL);
    errno = EIO;
    return true;
}

#define WRAP(name, parameters, arguments)                                                          \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters                                                                   \
    {                                                                                              \
        return step() ? -1 : __real_##name arguments;                                              \
    }

WRAP(renameat, (int a, const char *b, int c, const char *d), (a, b, c, d))
WRAP(unlinkat, (int a, const char *b, int c), (a, b, c))
WRAP(mkdirat, (int a, const char *b, mode_t c), (a, b, c))
WRAP(linkat, (int a, const char *b, int c, const char *d, int f), (a, b, c, d, f))
WRAP(symlinkat, (const char *a, int b, const char *c), (a, b, c))
WRAP(fchmodat, (int a, const char *b, mode_t c, int d), (a, b, c, d))
WRAP(fchownat, (int a, const char *b, uid_t c, gid_t d, int f), (a, b, c, d, f))
WRAP(utimensat, (int a, const char *b, const struct timespec c[2], int d), (a, b, c, d))

/* Nothing here survives the machine, so that syncs would only take time. */
int __wrap_syncfs(int file);
int __wrap_fsync(int file);
int __wrap_fdatasync(int file);

int __wrap_syncfs(int file)
{
    if (stop_at_sync != NULL)
        atomic_store(stop_at_sync, true);
    return step() ? -1 : 0;
}

int __wrap_fsync(int file)
{
    return step() ? -1 : 0;
}

int __wrap_fdatasync(int file)
{
    synced++;
    return step() ? -1 : 0;
}

static void shell(const char *format, const char *a, const char *b)
{
    char command[3 * FIXTURE_PATH];

    (void)snprintf(command, sizeof command, format, a, b);
    assert_int_equal(system(command), 0);
}

/* --- the state after a crash --- */

static char new_tree[FIXTURE_PATH], old_tree[FIXTURE_PATH], target[FIXTURE_PATH];

static void set_paths(void **state, struct how *way)
{
    (void)strcpy(new_tree, at(state, "data/from"));
    (void)strcpy(old_tree, at(state, "data/old"));
    (void)strcpy(target, at(state, "data/to"));
    way->from = new_tree;
    way->to = target;
}

static bool same_bytes(const char *one, const char *tree, const char *below)
{
    char other[PATH_MAX * 2];
    struct stat a, b;
    bool same = false;

    (void)snprintf(other, sizeof other, "%s%s", tree, below);
    int x = open(one, O_RDONLY), y = open(other, O_RDONLY | O_NOFOLLOW);
    if (x >= 0 && y >= 0 && fstat(x, &a) == 0 && fstat(y, &b) == 0 && S_ISREG(b.st_mode) &&
        a.st_size == b.st_size) {
        char *bytes = malloc(2 * (size_t)a.st_size + 1);
        same = pread(x, bytes, (size_t)a.st_size, 0) == a.st_size &&
               pread(y, bytes + a.st_size, (size_t)a.st_size, 0) == a.st_size &&
               memcmp(bytes, bytes + a.st_size, (size_t)a.st_size) == 0;
        free(bytes);
    }
    if (x >= 0)
        (void)close(x);
    if (y >= 0)
        (void)close(y);
    return same;
}

static int check_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    const char *below = path + strlen(target);

    if (S_ISREG(st->st_mode) && !same_bytes(path, new_tree, below) &&
        !same_bytes(path, old_tree, below))
        fail_msg("%s has contents of neither tree", path);
    return 0;
}

/* --- crashes --- */

static void begin_counting(void *steps)
{
    left = *(long *)steps;
}

/* Copies in another process, which ends after some steps of finish(). Returns whether it has ended. */
static bool crash(void **state, const struct how *way, long steps)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        struct how counted = *way;
        struct copying c;
        struct copied done;
        counted.before_finish = begin_counting;
        counted.argument = &steps;
        copying_open(&c, state);
        int code = copying_run(&c, &counted, &done);
        if (code != 0)
            (void)fprintf(stderr, "%s\n", done.error.text);
        copying_close(&c);
        _exit(code == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGKILL);
        return true;
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    return false;
}

/* Checks what the crash has left, and that the next start or copy completes it. */
static void check_recovery(void **state, const struct how *way, bool by_copy)
{
    struct copying c;
    struct copied done;
    bool complete = exists(at(state, "data/.to.torus-copy/complete"));
    bool as_it_comes = way->write.as_it_comes;

    copying_open(&c, state);
    if (exists(target))
        (void)nftw(target, check_one, 16, FTW_PHYS);
    if (!complete && !as_it_comes)
        assert_true(exists(target) ? trees_are_equal(target, old_tree, true) ||
                                         trees_are_equal(target, new_tree, true)
                                   : !exists(old_tree));
    else if (!exists(old_tree) && exists(target) && !as_it_comes)
        check_equal(new_tree, target); /* a new tree appears at once */
    if (!by_copy)
        tree_files_recover(&c.files);
    if (!by_copy && complete) {
        check_equal(new_tree, target);
        assert_false(exists(at(state, "data/.to.torus-copy")));
        assert_int_equal(entries(at(state, "state/copies")), 0);
    }
    if (copying_run(&c, way, &done) != 0)
        fail_msg("%s", done.error.text);
    check_equal(new_tree, target);
    assert_false(exists(at(state, "data/.to.torus-copy")));
    copying_close(&c);
}

static void crash_everywhere(void **state, unsigned seed, bool is_new, bool as_it_comes,
                             unsigned stride)
{
    struct how way = {.write = {.delete = true, .as_it_comes = as_it_comes}};
    unsigned crashes = 0;
    struct copying c;

    set_paths(state, &way);
    copying_open(&c, state);
    random_tree(new_tree, seed, 22);
    if (!is_new) {
        (void)copying_well(&c, new_tree, old_tree);
        random_changes(new_tree, seed);
        random_changes(old_tree, seed + 50);
    }
    copying_close(&c);
    for (long steps = 0;; steps += stride) {
        shell("rm -rf '%s'", target, "");
        if (!is_new)
            shell("cp -a '%s' '%s'", old_tree, target);
        if (!crash(state, &way, steps))
            break;
        crashes++;
        check_recovery(state, &way, steps % 2 == 1);
    }
    assert_true(crashes > 15 / stride);
    check_equal(new_tree, target);
}

FOLDER_TEST(a_new_tree_appears_at_once)
{
    crash_everywhere(state, 3, true, false, 3);
}

FOLDER_TEST(a_changed_tree_is_completed)
{
    crash_everywhere(state, 4, false, false, 2);
}

FOLDER_TEST(another_changed_tree_is_completed)
{
    crash_everywhere(state, 11, false, false, 5);
}

FOLDER_TEST(files_that_come_one_by_one_are_whole)
{
    crash_everywhere(state, 5, false, true, 5);
}

/* No file gets its name before its data is on the disk. */
FOLDER_TEST(files_that_come_one_by_one_are_synced)
{
    struct how way = {.write = {.as_it_comes = true}};
    struct copying c;
    struct copied done;

    set_paths(state, &way);
    copying_open(&c, state);
    make_folder(new_tree);
    for (unsigned i = 0; i < 5; i++) {
        char path[FIXTURE_PATH];
        (void)snprintf(path, sizeof path, "%.200s/%u", new_tree, i);
        random_file(path, i, 1000);
    }
    synced = 0;
    assert_int_equal(copying_run(&c, &way, &done), 0);
    assert_int_equal(synced, 5);
    copying_close(&c);
}

/* --- failures --- */

/* A step fails, and the copy with it; the next one succeeds. */
FOLDER_TEST(failures_leave_nothing_behind)
{
    struct how way = {.write = {.delete = true}};
    struct copying c;
    struct copied done;
    long steps = 0;
    int code;

    set_paths(state, &way);
    copying_open(&c, state);
    random_tree(new_tree, 6, 15);
    random_tree(old_tree, 7, 15);
    do {
        shell("rm -rf '%s'", target, "");
        shell("cp -a '%s' '%s'", old_tree, target);
        fails = true;
        left = steps;
        code = copying_run(&c, &way, &done);
        left = -1;
        fails = false;
        if (code != 0)
            assert_true(done.error.code == ERROR_IO || done.error.code == ERROR_REFUSED);
        (void)nftw(target, check_one, 16, FTW_PHYS);
        if (copying_run(&c, &way, &done) != 0)
            fail_msg("after %ld steps: %s", steps, done.error.text);
        check_equal(new_tree, target);
        steps += 7;
    } while (code != 0 || steps < 100);
    copying_close(&c);
}

/* To write what has arrived to the disk may take long: a copy that is stopped meanwhile is not put in place. */
FOLDER_TEST(a_copy_is_stopped_while_it_is_synced)
{
    struct tree_progress progress = {0};
    struct how way = {.write = {.delete = true}, .progress = &progress};
    struct copying c;
    struct copied done;

    set_paths(state, &way);
    copying_open(&c, state);
    random_tree(new_tree, 3, 22);
    random_tree(old_tree, 4, 22);
    (void)copying_well(&c, old_tree, target);
    stop_at_sync = &progress.stop;
    assert_int_equal(copying_run(&c, &way, &done), -1);
    stop_at_sync = NULL;
    assert_int_equal(done.error.code, ERROR_CANCELLED);
    check_equal(old_tree, target);
    assert_true(exists(at(state, "data/.to.torus-copy/arrived")));
    assert_false(exists(at(state, "data/.to.torus-copy/complete")));
    atomic_store(&progress.stop, false);
    assert_int_equal(copying_run(&c, &way, &done), 0);
    assert_int_equal(done.moved, 0);
    check_equal(new_tree, target);
    copying_close(&c);
}
