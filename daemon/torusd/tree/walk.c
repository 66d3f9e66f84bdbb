#include "daemon/torusd/tree/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/lib/base/grow.h"
#include "daemon/torusd/disk/names.h"
#include "daemon/torusd/tree/file_data.h"
#include "daemon/torusd/tree/manifest_format.h"
#include "daemon/torusd/tree/staging.h"
#include "daemon/torusd/tree/tree_files.h"

/* --- entries of a manifest, from what is found --- */

int found_changed(const char *above, const char *below, struct error *e)
{
    struct shown_path shown;

    (void)error_set(e, ERROR_IO,
                    "%s was changed while it was being copied: copy again when it is at rest, or "
                    "leave such files out (--changing skip)",
                    show_path(&shown, above, below));
    return FOUND_CHANGED;
}

bool found_says_changed(int error)
{
    return error == 0 || error == ENOENT || error == ELOOP || error == ENOTDIR || error == ENXIO ||
           error == ESTALE;
}

int found_unreadable(const char *above, const char *below, struct error *e)
{
    struct shown_path shown;
    int error = errno;

    if (found_says_changed(error))
        return found_changed(above, below, e);
    if (error == ECANCELED)
        return error_set(e, ERROR_CANCELLED, "the copy was stopped");
    if (error == EACCES || error == EPERM)
        return error_set(
            e, ERROR_REFUSED,
            "%s cannot be read: %s; let torusd's user read it, or leave it out with --exclude",
            show_path(&shown, above, below), strerror(error));
    return error_set(e, error == ENOMEM ? ERROR_MEMORY : ERROR_IO, "%s cannot be read: %s",
                     show_path(&shown, above, below), strerror(error));
}

bool found_is_same(const struct stat *a, const struct stat *b)
{
    return (a->st_mode & S_IFMT) == (b->st_mode & S_IFMT) && a->st_ino == b->st_ino &&
           (!S_ISREG(a->st_mode) || a->st_size == b->st_size) &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static struct entry entry_of(const struct found *f, enum entry_kind kind)
{
    return (struct entry){.kind = kind,
                          .path = f->path,
                          .path_length = f->path_length,
                          .mode = f->st.st_mode & 07777,
                          .owner = f->st.st_uid,
                          .group = f->st.st_gid,
                          .modified = f->st.st_mtim};
}

static int add_entry(struct entry_builder *b, const struct found *f, struct entry *entry,
                     struct error *e)
{
    struct shown_path shown;

    if (b->progress != NULL)
        (void)atomic_fetch_add(&b->progress->files, 1);
    if (manifest_maker_add(b->maker, entry, e) == 0)
        return entry_numbers_add(b->numbers, f->st.st_ino, e);
    return e->code == ERROR_REFUSED ? error_wrap(e, "%s", show_path(&shown, f->above, "")) : -1;
}

/* Completes an entry with attributes that were read, or fills *e. */
static int take_attributes(struct entry_builder *b, const struct found *f, struct entry *entry,
                           int result, struct error *e)
{
    struct shown_path shown;

    if (result == 0) {
        entry->attributes = b->attributes.bytes;
        return 0;
    }
    if (errno == E2BIG)
        return error_set(e, ERROR_REFUSED,
                         "%s has more than %u bytes of extended attributes, which cannot be "
                         "copied: remove some (setfattr -x), or leave it out with --exclude",
                         show_path(&shown, f->above, f->below), MANIFEST_ATTRIBUTES_MOST);
    return found_unreadable(f->above, f->below, e);
}

int build_folder(struct entry_builder *b, const struct found *f, int folder, struct error *e)
{
    struct entry entry = entry_of(f, ENTRY_FOLDER);
    int result = attributes_read(&b->attributes, folder, -1, "", &entry.attributes_length);

    result = take_attributes(b, f, &entry, result, e);
    return result == 0 ? add_entry(b, f, &entry, e) : result;
}

int build_symlink(struct entry_builder *b, const struct found *f, int folder, const char *name,
                  struct error *e)
{
    struct entry entry = entry_of(f, ENTRY_SYMLINK);
    ssize_t length = readlinkat(folder, name, b->link, sizeof b->link);

    if (length < 0) {
        if (errno == EINVAL) /* it is no link any more */
            errno = 0;
        return found_unreadable(f->above, f->below, e);
    }
    if (length == 0 || (size_t)length >= sizeof b->link) {
        errno = ENAMETOOLONG;
        return found_unreadable(f->above, f->below, e);
    }
    b->link[length] = '\0';
    entry.link = b->link;
    int result = take_attributes(
        b, f, &entry, attributes_read(&b->attributes, -1, folder, name, &entry.attributes_length),
        e);
    return result == 0 ? add_entry(b, f, &entry, e) : result;
}

/* Adds another name of a file that has an entry. */
static int build_hardlink(struct entry_builder *b, const struct found *f, uint64_t linked,
                          struct error *e)
{
    struct entry entry = entry_of(f, ENTRY_HARDLINK);

    entry.link = b->link;
    entry.linked = linked;
    return add_entry(b, f, &entry, e);
}

/* A file has changed while it was looked into. If such files are left out, it has an entry all the same: the copy does not
 * take it for one that the source lacks. Returns 0, or FOUND_CHANGED with *e. */
static int take_change(struct entry_builder *b, const struct found *f, struct error *e)
{
    b->changed = b->changing != NULL && b->changing->skip;
    return b->changed ? 0 : found_changed(f->above, f->below, e);
}

/* Whether a file has only become longer since it was found. */
static bool has_grown(const struct stat *found, const struct stat *now)
{
    return S_ISREG(now->st_mode) && found->st_ino == now->st_ino && now->st_size > found->st_size;
}

/* Finds the holes and the digest of a file. */
static int look_into(struct entry_builder *b, const struct found *f, int file, struct file_data *d,
                     struct entry *entry, struct error *e)
{
    struct stat now;

    *d = (struct file_data){.size = entry->size, .bytes = entry->size};
    if (f->st.st_blocks * 512 < f->st.st_size && file_data_find(file, entry->size, d) != 0)
        return found_unreadable(f->above, f->below, e);
    entry->extent = d->extent;
    entry->extents = d->extents;
    if (!b->digests)
        return 0;
    entry->has_digest = true;
    if (file_data_digest(file, d, b->progress, entry->digest) != 0)
        return errno == 0 ? take_change(b, f, e) : found_unreadable(f->above, f->below, e);
    if (fstat(file, &now) != 0 || !(found_is_same(&f->st, &now) || has_grown(&f->st, &now)))
        return take_change(b, f, e);
    return 0;
}

static void note_time(struct entry_builder *b, struct timespec time)
{
    struct timespec *latest = time.tv_nsec == 0 ? &b->latest_coarse : &b->latest;

    if (time.tv_sec > latest->tv_sec ||
        (time.tv_sec == latest->tv_sec && time.tv_nsec > latest->tv_nsec))
        *latest = time;
}

int build_file(struct entry_builder *b, const struct found *f, int file, struct error *e)
{
    struct entry entry = entry_of(f, ENTRY_FILE);
    struct file_data data = {0};
    uint64_t linked;
    bool many = f->st.st_nlink > 1;
    int known =
        many ? file_links_find(b->links, f->st.st_dev, f->st.st_ino, &linked, b->link, e) : 0;

    if (known != 0)
        return known > 0 ? build_hardlink(b, f, linked, e) : -1;
    entry.size = (uint64_t)f->st.st_size;
    note_time(b, entry.modified);
    b->changed = false;
    int result = look_into(b, f, file, &data, &entry, e);
    if (result == 0)
        result = take_attributes(
            b, f, &entry, attributes_read(&b->attributes, file, -1, "", &entry.attributes_length),
            e);
    if (result == 0)
        result = add_entry(b, f, &entry, e);
    if (result == 0)
        changing_note_sample(b->changing, file, &entry);
    if (result == 0 && b->changed &&
        changing_leave_out(b->changing, entry.index, f->above, f->below) != CHANGING_LEFT_OUT)
        result = found_changed(f->above, f->below, e);
    if (result == 0 && many)
        result = file_links_add(b->links, f->st.st_dev, f->st.st_ino, entry.index, f->path, e);
    file_data_free(&data);
    return result;
}

/* --- the walk --- */

/* A folder on the way to where the walk is. */
struct level {
    int folder; /* -1: closed, since there are too many */
    struct names names;
    size_t next;        /* name that is looked at next */
    size_t path_length; /* of the folder */
    struct stat st;
};

struct walker {
    struct walk *w;
    const struct walk_source *source;
    size_t below; /* where the path below the source begins */
    struct level *level;
    size_t levels, room;
    struct found found;
    char path[MANIFEST_PATH_MOST + NAME_MOST + 2];
};

static const char *path_below(const struct walker *k)
{
    return k->found.path_length > k->below ? k->path + k->below : "";
}

static void set_length(struct walker *k, size_t length)
{
    k->path[length] = '\0';
    k->found.path_length = length;
    k->found.below = path_below(k);
}

static int unreadable(const struct walker *k, struct error *e)
{
    return found_unreadable(k->source->path, path_below(k), e);
}

static int changed(const struct walker *k, struct error *e)
{
    return found_changed(k->source->path, path_below(k), e);
}

/* --- folders --- */

static void close_level(const struct walker *k, struct level *level)
{
    if (level->folder >= 0 && level->folder != k->source->file)
        (void)close(level->folder);
    level->folder = -1;
}

/* Adds an open folder, and goes into it. Its state is in k->found.st. Closes it in the end. */
static int enter(struct walker *k, int folder, struct error *e)
{
    struct level level = {.folder = folder, .path_length = k->found.path_length, .st = k->found.st};
    int result = 0, error;

    if (GROW(k->level, k->levels, k->room) != 0)
        result = error_set(e, ERROR_MEMORY, "out of memory for a walk");
    if (result == 0)
        result = build_folder(&k->w->builder, &k->found, folder, e);
    if (result == 0 && (error = names_read_opened(&level.names, folder)) < 0) {
        errno = -error;
        result = unreadable(k, e);
    }
    if (result != 0) {
        names_free(&level.names);
        close_level(k, &level);
        return result;
    }
    if (k->levels >= WALK_FOLDERS_OPEN)
        close_level(k, &k->level[k->levels - WALK_FOLDERS_OPEN]);
    k->level[k->levels++] = level;
    return 0;
}

static void leave(struct walker *k)
{
    struct level *level = &k->level[--k->levels];

    close_level(k, level);
    names_free(&level->names);
}

/* Opens a folder of the source again. Returns a descriptor or -errno. */
static int open_below(const struct walker *k, const char *below)
{
    const struct file_system *system = k->w->system;
    struct error e;

    if (*below == '\0')
        return k->source->file;
    int folder = system->open_folder(system->context, k->source->file, below);
    if (folder != -ELOOP || k->w->follow == NULL)
        return folder;
    folder = k->w->follow(k->w->context, k->source, below, &e);
    return folder >= 0 ? folder : -ENOENT;
}

/* Opens the folder of a level again, if it was closed. */
static int open_again(struct walker *k, struct level *level, struct error *e)
{
    struct stat st;

    if (level->folder >= 0)
        return 0;
    set_length(k, level->path_length);
    int folder = open_below(k, path_below(k));
    if (folder < 0) {
        errno = -folder;
        return unreadable(k, e);
    }
    level->folder = folder;
    if (fstat(folder, &st) != 0 || st.st_dev != level->st.st_dev || st.st_ino != level->st.st_ino)
        return changed(k, e);
    return 0;
}

/* --- what a folder holds --- */

static int leave_out(struct walker *k)
{
    if (k->w->left_out++ == 0)
        (void)show_path(&k->w->first_left_out, k->source->path, path_below(k));
    return 0;
}

static int enter_name(struct walker *k, int folder, const char *name, struct error *e)
{
    int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (inner < 0)
        return unreadable(k, e);
    if (fstat(inner, &k->found.st) == 0)
        return enter(k, inner, e);
    (void)close(inner);
    return unreadable(k, e);
}

static int add_file(struct walker *k, int folder, const char *name, struct error *e)
{
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (file < 0)
        return unreadable(k, e);
    int result = fstat(file, &k->found.st);
    if (result != 0)
        result = unreadable(k, e);
    else if (!S_ISREG(k->found.st.st_mode))
        result = changed(k, e);
    else
        result = build_file(&k->w->builder, &k->found, file, e);
    (void)close(file);
    return result;
}

/* --- links --- */

/* Whether a copy has a source with this name. */
static bool is_source(const struct walk *w, const char *name, size_t length)
{
    for (uint32_t i = 0; i < w->sources; i++)
        if (strncmp(w->source[i].name, name, length) == 0 && w->source[i].name[length] == '\0')
            return true;
    return false;
}

/* Whether a link leads to a place that the copy does not have, as far as its text says. */
static bool leads_out(const struct walker *k, const char *link)
{
    size_t depth = 0, length = strlen(k->source->path);

    if (link[0] == '/')
        return strncmp(link, k->source->path, length) != 0 ||
               (link[length] != '/' && link[length] != '\0');
    for (const char *c = k->path; *c != '\0'; c++)
        depth += *c == '/';
    for (; *link != '\0'; link += length + (link[length] == '/')) {
        length = strcspn(link, "/");
        if (length == 0 || (length == 1 && link[0] == '.'))
            continue;
        if (length == 2 && memcmp(link, "..", 2) == 0) {
            if (depth-- == 0)
                return true;
        } else if (depth++ == 0 && k->w->into && !is_source(k->w, link, length)) {
            return true;
        }
    }
    return false;
}

/* Adds what a link leads to. */
static int add_followed(struct walker *k, struct error *e)
{
    int file = k->w->follow(k->w->context, k->source, path_below(k), e);
    struct shown_path shown;
    int result;

    if (file < 0)
        return -1;
    if (fstat(file, &k->found.st) != 0) {
        result = unreadable(k, e);
    } else if (S_ISDIR(k->found.st.st_mode)) {
        for (size_t i = 0; i < k->levels; i++)
            if (k->level[i].st.st_ino == k->found.st.st_ino &&
                k->level[i].st.st_dev == k->found.st.st_dev) {
                (void)close(file);
                return error_set(e, ERROR_REFUSED,
                                 "%s is a link to a folder that it is in: leave it out with "
                                 "--exclude",
                                 show_path(&shown, k->source->path, path_below(k)));
            }
        if (!patterns_leave_out(k->w->patterns, k->path, true))
            return enter(k, file, e);
        result = 0;
    } else {
        result = S_ISREG(k->found.st.st_mode) ? build_file(&k->w->builder, &k->found, file, e)
                                              : leave_out(k);
    }
    (void)close(file);
    return result;
}

static int add_symlink(struct walker *k, int folder, const char *name, struct error *e)
{
    if (k->w->follow != NULL)
        return add_followed(k, e);
    if (fstatat(folder, name, &k->found.st, AT_SYMLINK_NOFOLLOW) != 0)
        return unreadable(k, e);
    if (!S_ISLNK(k->found.st.st_mode))
        return changed(k, e);
    int result = build_symlink(&k->w->builder, &k->found, folder, name, e);
    if (result == 0 && leads_out(k, k->w->builder.link) && k->w->links_out++ == 0)
        (void)show_path(&k->w->first_link_out, k->source->path, path_below(k));
    return result;
}

/* The DT_... of a name that the file system has not told. Returns 0, or -1 with *e. */
static int find_type(struct walker *k, int folder, const char *name, unsigned char *type,
                     struct error *e)
{
    struct stat st;

    if (*type != DT_UNKNOWN)
        return 0;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return unreadable(k, e);
    *type = (unsigned char)IFTODT(st.st_mode);
    return 0;
}

/* Looks at the next name of the folder that the walk is in. */
static int look_at_next(struct walker *k, struct error *e)
{
    struct level *level = &k->level[k->levels - 1];
    const char *name = names_get(&level->names, level->next);
    unsigned char type = names_type(&level->names, level->next++);
    size_t length = level->path_length, name_length = strlen(name);
    struct shown_path shown;

    if (staging_is_name(name)) /* what another copy gathers is not content */
        return 0;
    int result = open_again(k, level, e);
    if (result != 0)
        return result;
    if (name_length > NAME_MOST || length + name_length + 1 > MANIFEST_PATH_MOST)
        return error_set(e, ERROR_REFUSED,
                         "%s holds a name whose path is longer than %u bytes, and cannot be copied",
                         show_path(&shown, k->source->path, path_below(k)), MANIFEST_PATH_MOST);
    if (length > 0)
        k->path[length++] = '/';
    memcpy(k->path + length, name, name_length);
    set_length(k, length + name_length);
    result = find_type(k, level->folder, name, &type, e);
    if (result != 0)
        return result;
    if (patterns_leave_out(k->w->patterns, k->path, type == DT_DIR))
        return 0;
    if (type == DT_DIR)
        return enter_name(k, level->folder, name, e);
    if (type == DT_REG)
        return add_file(k, level->folder, name, e);
    return type == DT_LNK ? add_symlink(k, level->folder, name, e) : leave_out(k);
}

/* Something was changed while the walk looked at it, most often removed. Returns 0 if such files are left out, or -1. */
static int leave_change_out(struct walker *k, int result)
{
    return result == FOUND_CHANGED &&
                   changing_leave_out(k->w->builder.changing, UINT64_MAX, k->source->path,
                                      path_below(k)) == CHANGING_LEFT_OUT
               ? 0
               : -1;
}

static int go_on(struct walker *k, struct error *e)
{
    while (k->levels > 0) {
        struct level *level = &k->level[k->levels - 1];
        const struct tree_progress *progress = k->w->builder.progress;
        if (tree_stopped(progress, e))
            return -1;
        if (level->next == level->names.count) {
            leave(k);
            continue;
        }
        set_length(k, level->path_length);
        int result = look_at_next(k, e);
        if (result != 0 && leave_change_out(k, result) != 0)
            return -1;
    }
    return 0;
}

static int walk_source(struct walker *k, const struct walk_source *source, struct error *e)
{
    size_t length = strlen(source->name);

    k->source = source;
    if (length > NAME_MOST) {
        errno = ENAMETOOLONG;
        return found_unreadable(source->path, "", e);
    }
    memcpy(k->path, source->name, length + 1);
    k->below = length == 0 ? 0 : length + 1;
    k->found.path = k->path;
    k->found.above = source->path;
    set_length(k, length);
    if (fstat(source->file, &k->found.st) != 0)
        return unreadable(k, e);
    bool folder = S_ISDIR(k->found.st.st_mode);
    if (patterns_leave_out(k->w->patterns, source->name, folder))
        return 0;
    if (folder)
        return enter(k, source->file, e) == 0 ? go_on(k, e) : -1;
    if (S_ISREG(k->found.st.st_mode))
        return build_file(&k->w->builder, &k->found, source->file, e);
    return error_set(e, ERROR_REFUSED, "%s is neither a file nor a folder", source->path);
}

int walk(struct walk *w, struct error *e)
{
    struct walker *k = calloc(1, sizeof *k);
    int result = 0;

    if (k == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a walk");
    k->w = w;
    for (uint32_t i = 0; i < w->sources && result == 0; i++)
        result = walk_source(k, &w->source[i], e);
    while (k->levels > 0)
        leave(k);
    free(k->level);
    free(k);
    return result;
}
