/* Random trees, and their comparison. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "copying_fixture.h"
#include "tests/support/cmocka.h"

/* --- making --- */

static unsigned state_of_random;

static unsigned draw(unsigned below)
{
    state_of_random = state_of_random * 1103515245u + 12345u;
    return (state_of_random >> 8) % below;
}

void random_file(const char *path, unsigned seed, size_t length)
{
    uint8_t *bytes = malloc(length + 8);
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

    for (size_t i = 0; i < length; i += 8) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(bytes + i, &x, 8);
    }
    make_file(path, bytes, length);
    free(bytes);
}

static void set_time(const char *path, unsigned seed)
{
    struct timespec times[2] = {{1000000000 + seed % 100000, 0},
                                {1600000000 + seed % 1000000, seed * 7919 % 1000000000}};

    assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void make_sparse(const char *path)
{
    int file = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    uint8_t bytes[5000];

    assert_true(file >= 0);
    memset(bytes, 'x', sizeof bytes);
    assert_int_equal(ftruncate(file, 1 << 20), 0);
    for (unsigned i = draw(4); i > 0; i--)
        assert_int_equal(pwrite(file, bytes, sizeof bytes, draw(200) * 4096), sizeof bytes);
    assert_int_equal(ftruncate(file, 1 << 20), 0);
    (void)close(file);
}

/* A name of any bytes. */
static void make_name(char *name)
{
    size_t length = 1 + draw(draw(10) == 0 ? 200 : 12);

    for (size_t i = 0; i < length; i++) {
        unsigned byte = draw(4) == 0 ? 1 + draw(255) : 'a' + draw(26);
        name[i] = byte == '/' ? '-' : (char)byte;
    }
    name[length] = '\0';
    if (name[0] == '.')
        name[0] = '_';
}

static size_t random_size(void)
{
    static const size_t sizes[] = {0, 1, 100, 4096, 20000, 65536, 100001, 700000};

    return sizes[draw(8)] + draw(3);
}

static bool is_folder(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static void add_metadata(const char *path, bool is_link)
{
    if (!is_link) {
        static const mode_t modes[] = {0644, 0755, 0600, 0400, 0777, 04755, 02750, 0111};
        if (geteuid() == 0 && draw(4) == 0)
            assert_int_equal(lchown(path, draw(3) * 1000, draw(3) * 1000), 0);
        mode_t mode = modes[draw(8)];
        mode |= draw(5) == 0 ? 0 : 0400;
        if (geteuid() != 0) /* others than root read nothing else */
            mode |= is_folder(path) ? 0700 : 0400;
        assert_int_equal(chmod(path, mode), 0);
        if (draw(4) == 0)
            (void)setxattr(path, "user.note", "some value", 1 + draw(10), 0);
    }
    set_time(path, draw(100000));
}

static void add_one(const char *folder, char path[FIXTURE_PATH * 2], char last[FIXTURE_PATH * 2])
{
    char name[NAME_MAX + 1];
    unsigned kind = draw(12);

    do {
        make_name(name);
        (void)snprintf(path, FIXTURE_PATH * 2, "%s/%s", folder, name);
    } while (exists(path));
    if (kind == 0) {
        assert_int_equal(symlink(draw(2) == 0 ? "nowhere/../x" : name, path), 0);
    } else if (kind == 1 && last[0] != '\0') {
        assert_int_equal(link(last, path), 0);
        return;
    } else if (kind == 2) {
        make_sparse(path);
    } else {
        random_file(path, draw(1000), random_size());
        (void)strcpy(last, path);
    }
    add_metadata(path, kind == 0);
}

void random_tree(const char *path, unsigned seed, unsigned entries)
{
    char folder[32][FIXTURE_PATH * 2], made[FIXTURE_PATH * 2], last[FIXTURE_PATH * 2] = "";
    unsigned folders = 1;

    state_of_random = seed * 2654435761u + 1;
    make_folder(path);
    (void)snprintf(folder[0], sizeof folder[0], "%s", path);
    for (unsigned i = 0; i < entries; i++) {
        const char *in = folder[draw(folders)];
        char name[NAME_MAX + 1];
        if (draw(6) == 0 && folders < 32 && strlen(in) < FIXTURE_PATH / 2) {
            make_name(name);
            if (snprintf(made, sizeof made, "%s/%.20s", in, name) >= (int)sizeof made)
                continue;
            (void)strcpy(folder[folders], made);
            if (mkdir(folder[folders], 0755) == 0)
                folders++;
            continue;
        }
        if (strlen(in) < FIXTURE_PATH / 2)
            add_one(in, made, last);
    }
    for (unsigned i = folders; i > 0; i--)
        add_metadata(folder[i - 1], false);
}

/* --- changing --- */

static unsigned changes_left;

static int change_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    char other[FIXTURE_PATH * 2];

    if (ftw->level == 0 || draw(4) != 0 || strlen(path) > FIXTURE_PATH || changes_left == 0)
        return 0;
    changes_left--;
    (void)snprintf(other, sizeof other, "%s~", path);
    switch (draw(6)) {
    case 0:
        if (!S_ISDIR(st->st_mode))
            assert_int_equal(unlink(path), 0);
        break;
    case 1:
        if (!exists(other))
            assert_int_equal(rename(path, other), 0);
        break;
    case 2:
        if (!S_ISDIR(st->st_mode)) {
            assert_int_equal(unlink(path), 0);
            make_folder(path);
            make_file(strcat(strcpy(other, path), "/in"), "new", 3);
        }
        break;
    case 3:
        if (S_ISREG(st->st_mode)) {
            int file = open(path, O_WRONLY);
            if (file >= 0)
                assert_int_equal(pwrite(file, "changed", 7, st->st_size / 2), 7);
            (void)close(file);
        }
        break;
    case 4:
        if (!S_ISLNK(st->st_mode))
            assert_int_equal(chmod(path, 0700), 0);
        break;
    default:
        if (S_ISDIR(st->st_mode) && !exists(strcat(other, "/added")) && exists(path)) {
            (void)snprintf(other, sizeof other, "%s/added", path);
            random_file(other, draw(100), random_size());
        }
        break;
    }
    return 0;
}

void random_changes(const char *path, unsigned seed)
{
    state_of_random = seed * 2654435761u + 77;
    changes_left = 12;
    (void)nftw(path, change_one, 16, FTW_PHYS | FTW_DEPTH);
    set_time(path, seed);
}

/* --- comparing --- */

struct listing {
    char **line;
    size_t count;
    size_t root; /* length of the path of the tree */
};

static struct listing *listing; /* that add_line() fills: nftw() has no argument */

static uint64_t hash_of(const char *path)
{
    uint8_t bytes[65536];
    uint64_t hash = UINT64_C(14695981039346656037);
    int file = open(path, O_RDONLY | O_NOFOLLOW);
    ssize_t length;

    if (file < 0)
        return (uint64_t)errno;
    while ((length = read(file, bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < length; i++)
            hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    (void)close(file);
    return hash;
}

static size_t add_attributes(const char *path, char *out, size_t size)
{
    char names[4096], value[256];
    ssize_t length = llistxattr(path, names, sizeof names);
    size_t used = 0;

    for (ssize_t i = 0; i < length; i += (ssize_t)strlen(names + i) + 1) {
        ssize_t bytes = lgetxattr(path, names + i, value, sizeof value);
        used += (size_t)snprintf(out + used, size - used, " %s=%.*s", names + i, (int)bytes, value);
    }
    return used;
}

static int add_line(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    struct listing *l = listing;
    char text[PATH_MAX * 3], target[PATH_MAX];
    bool is_link = S_ISLNK(st->st_mode), is_file = S_ISREG(st->st_mode);
    ssize_t length = is_link ? readlink(path, target, sizeof target) : 0;

    int used = snprintf(text, sizeof text, "%s\n  mode %o owner %u:%u time %lld.%09ld",
                        path + l->root, is_link ? S_IFLNK : st->st_mode, st->st_uid, st->st_gid,
                        (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
    if (is_file)
        used += snprintf(text + used, sizeof text - (size_t)used, " size %lld links %u hash %llx%s",
                         (long long)st->st_size, (unsigned)st->st_nlink,
                         (unsigned long long)hash_of(path),
                         st->st_blocks * 512 + 65536 < st->st_size ? " sparse" : "");
    if (is_link)
        used += snprintf(text + used, sizeof text - (size_t)used, " to %.*s", (int)length, target);
    (void)add_attributes(path, text + used, sizeof text - (size_t)used);
    l->line = reallocarray(l->line, l->count + 1, sizeof *l->line);
    l->line[l->count++] = strdup(text);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_tree(struct listing *l, const char *path)
{
    *l = (struct listing){.root = strlen(path)};
    listing = l;
    (void)nftw(path, add_line, 16, FTW_PHYS);
    if (l->count > 0)
        qsort(l->line, l->count, sizeof *l->line, by_text);
}

bool trees_are_equal(const char *one, const char *other, bool quiet)
{
    struct listing a, b;
    bool equal = true;

    list_tree(&a, one);
    list_tree(&b, other);
    for (size_t i = 0; i < a.count || i < b.count; i++) {
        const char *x = i < a.count ? a.line[i] : "(nothing)",
                   *y = i < b.count ? b.line[i] : "(nothing)";
        if (strcmp(x, y) == 0)
            continue;
        if (!quiet)
            fail_msg("trees differ:\n%s\n%s", x, y);
        equal = false;
        break;
    }
    for (size_t i = 0; i < a.count; i++)
        free(a.line[i]);
    for (size_t i = 0; i < b.count; i++)
        free(b.line[i]);
    free(a.line);
    free(b.line);
    return equal;
}

void check_equal(const char *one, const char *other)
{
    (void)trees_are_equal(one, other, false);
}
