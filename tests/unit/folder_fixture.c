#include "folder_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

int folder_setup(void **state)
{
    char template[] = "/tmp/torusd-test-XXXXXX";

    if (mkdtemp(template) == NULL)
        return -1;
    *state = realpath(template, NULL);
    return *state != NULL ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    return remove(path);
}

int folder_teardown(void **state)
{
    int result = nftw(*state, remove_one, 8, FTW_DEPTH | FTW_PHYS);

    free(*state);
    return result;
}

const char *at(void **state, const char *name, ...)
{
    static char buffer[64][FIXTURE_PATH];
    static unsigned next;
    char *path = buffer[next++ % 64];
    va_list ap;

    int n = snprintf(path, FIXTURE_PATH, "%s/", (const char *)*state);
    va_start(ap, name);
    (void)vsnprintf(path + n, FIXTURE_PATH - (size_t)n, name, ap);
    va_end(ap);
    return path;
}

void make_folder(const char *path)
{
    assert_int_equal(mkdir(path, 0777), 0);
}

void make_file(const char *path, const void *bytes, size_t length)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}

void overwrite(const char *path, long offset, const char *text)
{
    int file = open(path, O_WRONLY);

    assert_true(file >= 0);
    if (offset < 0)
        offset += lseek(file, 0, SEEK_END);
    assert_int_equal(pwrite(file, text, strlen(text), offset), (ssize_t)strlen(text));
    (void)close(file);
}

bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

unsigned entries(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    unsigned n = 0;

    if (dir == NULL)
        return 0;
    while ((entry = readdir(dir)) != NULL)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    (void)closedir(dir);
    return n;
}

void check_file(const char *path, const void *bytes, size_t length)
{
    FILE *f = fopen(path, "rb");
    char *read = malloc(length + 1);

    if (f == NULL)
        fail_msg("%s is not there", path);
    assert_non_null(read);
    assert_int_equal(fread(read, 1, length + 1, f), length);
    assert_memory_equal(read, bytes, length);
    free(read);
    (void)fclose(f);
}

/* --- jobs --- */

static int on_submit(void *context, struct work *work)
{
    struct stepper *s = context;

    if (s->refuse)
        return -1;
    assert_in_range(s->submitted_count, 0, STEPPER_MOST - 1);
    s->submitted[s->submitted_count++] = work;
    return 0;
}

void stepper_init(struct stepper *s, unsigned seed)
{
    *s = (struct stepper){.workers = {s, on_submit}, .chance = seed};
}

static unsigned choose(struct stepper *s, unsigned count)
{
    if (s->chance == 0)
        return 0;
    s->chance = s->chance * 1103515245u + 12345u;
    return (s->chance >> 16) % count;
}

static struct work *take(struct stepper *s, struct work **list, unsigned *count)
{
    unsigned index = choose(s, *count);
    struct work *work = list[index];

    memmove(list + index, list + index + 1, (--*count - index) * sizeof *list);
    return work;
}

bool stepper_step(struct stepper *s)
{
    if (s->ran_count > 0 && (s->submitted_count == 0 || choose(s, 2) == 0)) {
        struct work *work = take(s, s->ran, &s->ran_count);
        work->done(work);
    } else if (s->submitted_count > 0) {
        struct work *work = take(s, s->submitted, &s->submitted_count);
        work->run(work);
        assert_in_range(s->ran_count, 0, STEPPER_MOST - 1);
        s->ran[s->ran_count++] = work;
    } else {
        return false;
    }
    return true;
}

void stepper_finish(struct stepper *s)
{
    while (stepper_step(s))
        ;
}

/* --- failures --- */

static const struct file_system *real(void)
{
    return file_system_posix();
}

/* Whether this call is the one. */
static bool fails(struct faulty_files *f, const char *call)
{
    if (f->left < 0 || f->left-- > 0)
        return false;
    f->failed = true;
    f->call = call;
    if (f->before != NULL) {
        f->before(f->argument);
        return false;
    }
    return true;
}

#define PASS(call, ...)                                                                            \
    (fails(context, #call) ? -((struct faulty_files *)context)->error                              \
                           : real()->call(real()->context, __VA_ARGS__))

static int opened(void *context, int fd)
{
    ((struct faulty_files *)context)->open += fd >= 0;
    return fd;
}

static int f_resolve(void *context, const char *path, char *out)
{
    return PASS(resolve, path, out);
}

static int f_open_folder(void *context, int folder, const char *path)
{
    return opened(context, PASS(open_folder, folder, path));
}

static int f_open_file(void *context, int folder, const char *path)
{
    return opened(context, PASS(open_file, folder, path));
}

static int f_create_file(void *context, int folder, const char *name, mode_t mode)
{
    return opened(context, PASS(create_file, folder, name, mode));
}

static int f_reopen_file(void *context, int folder, const char *name)
{
    return opened(context, PASS(reopen_file, folder, name));
}

static int f_make_folder(void *context, int folder, const char *name, mode_t mode)
{
    return PASS(make_folder, folder, name, mode);
}

static int f_rename(void *context, int folder, const char *from, const char *to)
{
    return PASS(rename, folder, from, to);
}

static int f_swap(void *context, int folder, const char *one, const char *other)
{
    return PASS(swap, folder, one, other);
}

static int f_remove_file(void *context, int folder, const char *name)
{
    return PASS(remove_file, folder, name);
}

static int f_remove_folder(void *context, int folder, const char *name)
{
    return PASS(remove_folder, folder, name);
}

static int f_list(void *context, int folder, void (*each)(void *argument, const char *name),
                  void *argument)
{
    return PASS(list, folder, each, argument);
}

static int f_status(void *context, int file, struct file_status *out)
{
    return PASS(status, file, out);
}

static int f_status_at(void *context, int folder, const char *name, struct file_status *out)
{
    return PASS(status_at, folder, name, out);
}

static int f_set_owner(void *context, int file, uid_t owner, gid_t group)
{
    return PASS(set_owner, file, owner, group);
}

static int f_set_mode(void *context, int file, mode_t mode)
{
    return PASS(set_mode, file, mode);
}

static ssize_t f_read_acl(void *context, int file, enum acl which, void *bytes, size_t most)
{
    return PASS(read_acl, file, which, bytes, most);
}

static int f_write_acl(void *context, int file, enum acl which, const void *bytes, size_t length)
{
    return PASS(write_acl, file, which, bytes, length);
}

static int f_check_removable(void *context, int folder, const char *name, const char **why)
{
    *why = "is examined in vain";
    return PASS(check_removable, folder, name, why);
}

static int f_check_writable(void *context, int folder)
{
    return PASS(check_writable, folder);
}

static ssize_t f_read(void *context, int file, const struct iovec *piece, int count,
                      uint64_t offset)
{
    const struct faulty_files *f = context;
    struct iovec first = piece[0];

    if (f->read_most == 0)
        return PASS(read, file, piece, count, offset);
    if (first.iov_len > f->read_most)
        first.iov_len = f->read_most;
    return PASS(read, file, &first, 1, offset);
}

static ssize_t f_read_cached(void *context, int file, void *data, size_t length, uint64_t offset)
{
    const struct faulty_files *f = context;

    if (!f->cached)
        return -EOPNOTSUPP;
    if (f->read_most > 0 && length > f->read_most)
        length = f->read_most;
    return PASS(read_cached, file, data, length, offset);
}

static ssize_t f_write(void *context, int file, const struct iovec *piece, int count,
                       uint64_t offset)
{
    return PASS(write, file, piece, count, offset);
}

static int f_truncate(void *context, int file, uint64_t size)
{
    return PASS(truncate, file, size);
}

static int f_sync(void *context, int file)
{
    return PASS(sync, file);
}

static void f_start_sync(void *context, int file)
{
    real()->start_sync(real()->context, file);
}

static int f_lock(void *context, int file)
{
    return PASS(lock, file);
}

static int f_is_volatile(void *context, int folder)
{
    return real()->is_volatile(real()->context, folder);
}

static bool f_in_memory(void *context, int file)
{
    return ((struct faulty_files *)context)->in_memory;
}

static void f_close(void *context, int file)
{
    ((struct faulty_files *)context)->open--;
    real()->close(real()->context, file);
}

void faulty_files_init(struct faulty_files *f)
{
    *f = (struct faulty_files){.left = -1, .error = EIO};
    f->files = (struct file_system){
        .context = f,
        .resolve = f_resolve,
        .open_folder = f_open_folder,
        .open_file = f_open_file,
        .create_file = f_create_file,
        .reopen_file = f_reopen_file,
        .make_folder = f_make_folder,
        .rename = f_rename,
        .remove_file = f_remove_file,
        .remove_folder = f_remove_folder,
        .list = f_list,
        .status = f_status,
        .status_at = f_status_at,
        .swap = f_swap,
        .set_owner = f_set_owner,
        .set_mode = f_set_mode,
        .read_acl = f_read_acl,
        .write_acl = f_write_acl,
        .check_removable = f_check_removable,
        .check_writable = f_check_writable,
        .read = f_read,
        .read_cached = f_read_cached,
        .write = f_write,
        .truncate = f_truncate,
        .sync = f_sync,
        .start_sync = f_start_sync,
        .lock = f_lock,
        .is_volatile = f_is_volatile,
        .in_memory = f_in_memory,
        .close = f_close,
    };
}
