#include "daemon/torusd/tree/staging.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/torusd/disk/attributes.h"
#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/disk/file_stamp.h"
#include "daemon/torusd/disk/names.h"
#include "daemon/torusd/tree/metadata.h"
#include "daemon/torusd/tree/removal.h"
#include "proto/text.h"

#define LOCK_EVERY_MS 50u
#define HOLDER_SIZE 200u

int staging_failed(const struct staging *s, const char *done, int error, struct error *e)
{
    return error_set(e, error == ENOMEM ? ERROR_MEMORY : ERROR_IO,
                     "the new files of %s cannot be %s: %s", s->printable, done, strerror(error));
}

int staging_sync(const struct staging *s, struct error *e)
{
    return syncfs(s->folder) == 0 ? 0 : staging_failed(s, "synced", errno, e);
}

int staging_refuse(const struct staging *s, const char *path, mode_t mode, struct error *e)
{
    char whole[2 * PATH_MAX + 3 * NAME_MAX];

    (void)snprintf(whole, sizeof whole, "%s%s%s", s->shown, path[0] != '\0' ? "/" : "", path);
    return file_stamp_refuse(whole, mode, "copy again", e);
}

/* --- where a target and its staging are --- */

/* Whether there is a staging of the target now, whoever has made it. */
static bool staging_exists(const void *staging)
{
    const struct staging *s = staging;
    struct stat st;

    return fstatat(s->above, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void staging_forget(const struct staging *s, const struct journal *copies)
{
    journal_remove_copy(copies, s->path, staging_exists, s);
}

/* If the target is a mount point, everything is done inside it. */
static int enter_mount(struct staging *s)
{
    struct stat st, above;
    bool mount;

    if (tree_at_status(s->above, s->target, &st, &mount) != 0 || !S_ISDIR(st.st_mode) ||
        fstat(s->above, &above) != 0 || (!mount && st.st_dev == above.st_dev))
        return 0;
    int inside = openat(s->above, s->target, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inside < 0)
        return -errno;
    (void)close(s->above);
    s->above = inside;
    (void)strcpy(s->target, ".");
    return 0;
}

int staging_find(struct staging *s, const struct roots *roots, mode_t output_mode, const char *path,
                 struct made_folders *made, struct error *e)
{
    char staging[NAME_MAX + 1];
    struct location place;

    *s = (struct staging){.above = -1,
                          .folder = -1,
                          .roots = roots,
                          .output_mode = output_mode & 0777u,
                          .made = made};
    staging_set_path(s, path);
    if (roots_find(roots, path, &place, e) != 0)
        return -1;
    if (staging_is_path(place.path))
        return error_set(e, ERROR_REFUSED,
                         "%s has a name that torusd gives to the new files of copies: name another "
                         "target",
                         s->printable);
    const char *name = location_split(&place, &s->place);
    s->is_root = strcmp(name, ".") == 0;
    if (strlen(name) > NAME_MAX)
        return error_set(e, ERROR_USAGE, "the name of target %.100s... is too long", path);
    (void)strcpy(s->target, name);
    int result = staging_open_above(s, e);
    if (result == 0 && !s->is_root)
        result = enter_mount(s);
    staging_name_copy(s->target, staging);
    staging_set_name(s, staging);
    if (result == 0 || (result == -ENOENT && made == NULL))
        return 0;
    const bool is_link = result == -ENOTDIR || result == -ELOOP;
    return error_set(e,
                     is_link             ? ERROR_REFUSED
                     : result == -ENOMEM ? ERROR_MEMORY
                                         : ERROR_IO,
                     "the folder above %s cannot be opened: %s", s->printable,
                     is_link ? "a part of the path is a link, or no folder" : strerror(-result));
}

/* --- opening --- */

/* Returns -1 with *e, for a folder that others may use, or that is not the daemon's. */
static int refuse_folder(const struct staging *s, struct error *e)
{
    if (s->resumed)
        return error_set(e, ERROR_REFUSED,
                         "%.400s is not a private folder of the daemon: remove it, and copy again",
                         s->shown);
    (void)unlinkat(s->above, s->name, AT_REMOVEDIR);
    return error_set(e, ERROR_REFUSED,
                     "the file system of %.400s keeps no owners and permissions, so a copy cannot "
                     "be kept from other users until it is complete: mount it for torusd's user "
                     "only (options uid=%u,umask=077), or name another target",
                     s->printable, (unsigned)geteuid());
}

/* Opens the staging. Returns 0; -errno if it does not exist, or is locked or replaced just now; or -1 with *e. */
static int open_locked(struct staging *s, struct error *e)
{
    struct stat st;
    int folder = staging_lock(s, s->name);

    if ((folder == -ENOTDIR || folder == -ELOOP) &&
        fstatat(s->above, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return staging_refuse(s, "", st.st_mode, e);
    if (folder == -ENOENT || folder == -EWOULDBLOCK || folder == -ESTALE)
        return folder;
    if (folder < 0)
        return staging_failed(s, "opened", -folder, e);
    if (fstat(folder, &st) != 0 || st.st_uid != geteuid() || (st.st_mode & 0077u) != 0) {
        (void)close(folder);
        return refuse_folder(s, e);
    }
    s->folder = folder;
    return 0;
}

/* --- who uses it --- */

/* Names a daemon: a run of a system, and a process. Returns the number of bytes. */
static size_t describe_holder(const struct staging *s, char text[HOLDER_SIZE])
{
    char boot[BOOT_ID_SIZE];

    read_boot_id(boot);
    boot[strcspn(boot, "\n")] = '\0';
    return (size_t)snprintf(text, HOLDER_SIZE, "%.127s\n%s %ld\n", s->id, boot, (long)getpid());
}

/* Says which copy uses the staging now; without it, other nodes cannot tell that they share the target. */
static void write_holder(const struct staging *s)
{
    char text[HOLDER_SIZE];

    if (s->id == NULL)
        return;
    int file = openat(s->folder, STAGING_HOLDER,
                      O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    (void)file_write(file, text, describe_holder(s, text), 0);
    (void)close(file);
}

/* Whether the same copy has the staging locked at another node: this one shares the file system with it. */
static bool is_shared(const struct staging *s)
{
    char path[NAME_MAX + sizeof STAGING_HOLDER + 2], text[HOLDER_SIZE] = "", own[HOLDER_SIZE];

    if (s->id == NULL)
        return false;
    (void)snprintf(path, sizeof path, "%s/" STAGING_HOLDER, s->name);
    const ssize_t length = file_fetch(file_system_posix(), s->above, path, text, sizeof text - 1);
    (void)describe_holder(s, own);
    const size_t id = strcspn(own, "\n") + 1;
    return length > (ssize_t)id && strncmp(text, own, id) == 0 && strcmp(text, own) != 0;
}

/* Waits a little for another copy. Returns 0, or -1 with *e: its time is over. */
static int wait_for_other(const struct staging *s, uint32_t *patience_ms, struct error *e)
{
    const uint32_t step = *patience_ms < LOCK_EVERY_MS ? *patience_ms : LOCK_EVERY_MS;
    const struct timespec pause = {.tv_nsec = (long)step * 1000000};

    if (is_shared(s))
        return error_set(e, ERROR_BUSY,
                         "another node of this copy writes to the same %s: the nodes share this "
                         "file system. Copy to one of them (--nodes), or give each node a target "
                         "of its own (%%r)",
                         s->printable);
    if (step == 0)
        return staging_rival("another copy", s->printable, e);
    (void)nanosleep(&pause, NULL);
    *patience_ms -= step;
    return 0;
}

int staging_open(struct staging *s, bool make, uint32_t patience_ms, struct error *e)
{
    struct stat st;

    *e = (struct error){0};
    s->resumed = true;
    if (s->above >= 0 && fstat(s->above, &st) == 0)
        s->before = st.st_mtim;
    for (unsigned tries = 0; tries < 100 && s->above >= 0; tries++) {
        int result = open_locked(s, e);
        while (result == -EWOULDBLOCK && wait_for_other(s, &patience_ms, e) == 0)
            result = open_locked(s, e);
        if (result == 0 && !s->resumed)
            metadata_clear_defaults(s->folder);
        if (result == 0 && fchmod(s->folder, ATTRIBUTES_PRIVATE) != 0)
            return staging_failed(s, "opened", errno, e);
        if (result == 0)
            write_holder(s);
        if (result == 0) /* an exchange of files would put a folder in place, too */
            return strcmp(s->target, ".") == 0 ? 0 : staging_check_rivals(s, NULL, NULL, e);
        if (result == -1 || result == -EWOULDBLOCK)
            return -1;
        if (result == -ESTALE)
            continue;
        if (!make)
            return -1;
        result = staging_make(s, e);
        if (result == 0)
            s->resumed = false;
        else if (result != -EEXIST)
            return staging_failed(s, "made", -result, e);
    }
    return make ? staging_failed(s, "locked", EAGAIN, e) : -1;
}

/* --- removing --- */

int staging_clear(const struct staging *s, const char *name, struct error *e)
{
    struct tree_at at;

    tree_at_init(&at, s->folder, ".", s->shown);
    struct removal removal = {.at = &at, .everything = true};
    int result = removal_of(&removal, name, e);
    tree_at_close(&at);
    return result;
}

int staging_remove(struct staging *s, struct error *e)
{
    struct tree_at at;

    /* what must not survive a crash halfway comes first */
    if (unlinkat(s->folder, "complete", 0) != 0 && errno != ENOENT)
        return staging_failed(s, "removed", errno, e);
    tree_at_init(&at, s->folder, ".", s->shown);
    struct removal removal = {.at = &at, .everything = true};
    int result = removal_below(&removal, "", e);
    tree_at_close(&at);
    if (result != 0)
        return -1;
    result = staging_remove_folder(s);
    if (result < 0 && result != -ENOENT && result != -ESTALE)
        return staging_failed(s, "removed", -result, e);
    file_system_close(s->roots->files, &s->folder);
    return 0;
}

/* --- files --- */

const char *staging_file(uint64_t index, char out[STAGING_NAME_SIZE])
{
    (void)snprintf(out, STAGING_NAME_SIZE, STAGING_FILES "/%05" PRIx64 "/%" PRIx64, index >> 10,
                   index);
    return out;
}

/* Returns the descriptor or -errno. */
static int open_file(const struct staging *s, uint64_t index, int flags, mode_t mode)
{
    char name[STAGING_NAME_SIZE], *slash;

    (void)staging_file(index, name);
    int file = openat(s->folder, name, flags, mode);
    if (file >= 0 || errno != ENOENT)
        return file >= 0 ? file : -errno;
    slash = strrchr(name, '/');
    *slash = '\0';
    if ((mkdirat(s->folder, STAGING_FILES, ATTRIBUTES_PRIVATE) != 0 && errno != EEXIST) ||
        (mkdirat(s->folder, name, ATTRIBUTES_PRIVATE) != 0 && errno != EEXIST))
        return -errno;
    *slash = '/';
    file = openat(s->folder, name, flags, mode);
    return file >= 0 ? file : -errno;
}

int staging_open_file(const struct staging *s, uint64_t index, bool empty)
{
    char name[STAGING_NAME_SIZE];
    int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (empty ? O_TRUNC : 0);
    int file = open_file(s, index, flags, 0600);

    /* An interrupted copy may have given the file a mode already that closes it to its owner. */
    if (file == -EACCES && fchmodat(s->folder, staging_file(index, name), 0600, 0) == 0)
        file = open_file(s, index, flags, 0600);
    return file;
}

int staging_make_file(const struct staging *s, uint64_t index, mode_t mode)
{
    char name[STAGING_NAME_SIZE];
    int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int file = open_file(s, index, flags, mode);

    if (file == -EEXIST && unlinkat(s->folder, staging_file(index, name), 0) == 0)
        file = open_file(s, index, flags, mode);
    return file;
}

/* What a staging may hold: files and folders that torusd has made. Links and folders in the place of files would lead
 * copies elsewhere, or fail them one after the other. */

#define DEEP 3u /* f/XXXXX/XXXXXXX */

struct checking {
    const struct staging *staging;
    char path[3 * (NAME_MAX + 1)];
};

/* The kind that something with this path has to have; 0: any. */
static mode_t kind_of(const char *path, unsigned depth)
{
    static const char *const file[] = {
        STAGING_MANIFEST, STAGING_MANIFEST_NEW, STAGING_ARRIVED, "arrived.new",
        "arrived.synced", "arrived.syncing",    "stamps",        "reserve",
        "complete",       "complete.new",       STAGING_HOLDER};

    if (depth > 1)
        return depth == DEEP ? S_IFREG : S_IFDIR;
    for (unsigned i = 0; i < sizeof file / sizeof *file; i++)
        if (strcmp(path, file[i]) == 0)
            return S_IFREG;
    return strcmp(path, STAGING_FILES) == 0 || strcmp(path, STAGING_OLD_FILES) == 0 ||
                   strcmp(path, STAGING_TREE) == 0
               ? S_IFDIR
               : 0;
}

static int check_below(struct checking *c, int folder, unsigned depth, struct error *e);

/* Checks the name that c->path ends with. */
static int check_name(struct checking *c, int folder, const char *name, unsigned char type,
                      unsigned depth, struct error *e)
{
    mode_t mode = type == DT_UNKNOWN ? 0 : (mode_t)DTTOIF(type), kind = kind_of(c->path, depth);
    struct stat st;

    if (mode == 0 && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        mode = st.st_mode & S_IFMT;
    if (kind != 0 && mode != kind)
        return staging_refuse(c->staging, c->path, mode, e);
    if (kind != S_IFDIR || (depth == 1 && strcmp(name, STAGING_TREE) == 0))
        return 0;
    int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int result = inner >= 0 ? check_below(c, inner, depth + 1, e)
                            : staging_failed(c->staging, "examined", errno, e);
    file_close(&inner);
    return result;
}

static int check_below(struct checking *c, int folder, unsigned depth, struct error *e)
{
    const size_t length = strlen(c->path);
    struct names names = {0};
    int error = names_read(&names, folder);
    int result = error < 0 ? staging_failed(c->staging, "examined", -error, e) : 0;

    for (size_t i = 0; i < names.count && result == 0; i++) {
        const char *name = names_get(&names, i);
        (void)snprintf(c->path + length, sizeof c->path - length, "%s%s", length > 0 ? "/" : "",
                       name);
        result = check_name(c, folder, name, names_type(&names, i), depth, e);
    }
    c->path[length] = '\0';
    names_free(&names);
    return result;
}

int staging_check(const struct staging *s, struct error *e)
{
    struct checking c = {.staging = s};

    return check_below(&c, s->folder, 1, e);
}

/* The marker is a line "torus-copy 1 INTO DELETE AS_IT_COMES" (each 0 or 1), then patterns, each with a 0 byte behind it,
 * and then ".". */

#define NEXT "complete.new"
#define FORMAT "torus-copy 1 %d %d %d\n"
#define LINE_MOST 64u

int complete_write(const struct staging *s, const struct complete *c, struct error *e)
{
    size_t length = LINE_MOST + 1;

    for (uint32_t i = 0; i < c->patterns; i++)
        length += strlen(c->pattern[i]) + 1;
    char *bytes = length <= COMPLETE_MOST ? malloc(length) : NULL;
    if (bytes == NULL)
        return staging_failed(s, "recorded", ENOMEM, e);
    int used = snprintf(bytes, LINE_MOST, FORMAT, c->into, c->delete, c->as_it_comes);
    char *at = bytes + used;
    for (uint32_t i = 0; i < c->patterns; i++)
        at = stpcpy(at, c->pattern[i]) + 1;
    *at++ = '.';
    int result = file_replace(file_system_posix(), s->folder, NEXT, COMPLETE_NAME, bytes,
                              (size_t)(at - bytes), true);
    free(bytes);
    return result == 0 ? 0 : staging_failed(s, "recorded", -result, e);
}

/* Takes the patterns from a marker. Returns 1; 0: it is damaged; -ENOMEM. */
static int take_patterns(struct complete *c, const char *at, const char *end)
{
    uint32_t count = 0;

    if (at >= end || end[-1] != '.' || (end - at > 1 && end[-2] != '\0'))
        return 0;
    end--;
    for (const char *p = at; p < end; p++)
        count += *p == '\0';
    c->pattern = calloc(count + 1, sizeof *c->pattern);
    if (c->pattern == NULL)
        return -ENOMEM;
    for (; at < end; at += strlen(at) + 1) {
        c->pattern[c->patterns] = strdup(at);
        if (c->pattern[c->patterns++] == NULL)
            return -ENOMEM;
    }
    return 1;
}

static int take(struct complete *c, const char *bytes, size_t length)
{
    int into, delete, as_it_comes, used = 0;
    const char *line = memchr(bytes, '\n', length);

    if (line == NULL || memchr(bytes, '\0', (size_t)(line - bytes)) != NULL)
        return 0;
    if (sscanf(bytes, "torus-copy 1 %d %d %d%n", &into, &delete, &as_it_comes, &used) != 3 ||
        bytes + used != line)
        return 0;
    *c = (struct complete){
        .into = into != 0, .delete = delete != 0, .as_it_comes = as_it_comes != 0};
    return take_patterns(c, line + 1, bytes + length);
}

int complete_read(const struct staging *s, struct complete *c, struct error *e)
{
    char *bytes = malloc(COMPLETE_MOST + 1);
    ssize_t length = bytes != NULL ? file_fetch(file_system_posix(), s->folder, COMPLETE_NAME,
                                                bytes, COMPLETE_MOST)
                                   : -ENOMEM;
    int result = length < 0 && length != -ENOENT ? (int)length : 0;

    *c = (struct complete){0};
    if (length > 0) {
        bytes[length] = '\0';
        result = take(c, bytes, (size_t)length);
    }
    free(bytes);
    if (result != 1)
        complete_free(c);
    return result >= 0 ? result : staging_failed(s, "read", -result, e);
}

int complete_withdraw(const struct staging *s, struct error *e)
{
    if (unlinkat(s->folder, COMPLETE_NAME, 0) != 0 && errno != ENOENT)
        return staging_failed(s, "removed", errno, e);
    return 0;
}

void complete_free(struct complete *c)
{
    for (uint32_t i = 0; i < c->patterns; i++)
        free(c->pattern[i]);
    free(c->pattern);
    *c = (struct complete){0};
}
