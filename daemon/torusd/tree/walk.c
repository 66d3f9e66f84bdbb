#include "daemon/torusd/tree/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/tree/folder_names.h"
#include "daemon/torusd/tree/manifest_format.h"
#include "daemon/torusd/tree/staging.h"

/* A folder on the way to where the walk is. */
struct level {
    int folder; /* -1: closed, since there are too many */
    struct folder_names names;
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

static int make_room(struct walker *k, struct error *e)
{
    if (k->levels < k->room)
        return 0;
    size_t room = 2 * k->room + 16;
    struct level *level = reallocarray(k->level, room, sizeof *level);
    if (level == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a walk");
    k->level = level;
    k->room = room;
    return 0;
}

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
    int result = make_room(k, e);

    if (result == 0)
        result = build_folder(&k->w->builder, &k->found, folder, e);
    if (result == 0 && folder_names_read(&level.names, folder) != 0)
        result = unreadable(k, e);
    if (result != 0) {
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
    folder_names_free(&level->names);
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

static int look_at(struct walker *k, const struct folder_name *name, struct error *e)
{
    struct level *level = &k->level[k->levels - 1];
    size_t length = level->path_length, name_length = strlen(name->name);
    unsigned char type = name->type;
    struct shown_path shown;

    if (staging_is_name(name->name)) /* what another copy gathers is not content */
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
    memcpy(k->path + length, name->name, name_length);
    set_length(k, length + name_length);
    result = find_type(k, level->folder, name->name, &type, e);
    if (result != 0)
        return result;
    if (patterns_leave_out(k->w->patterns, k->path, type == DT_DIR))
        return 0;
    if (type == DT_DIR)
        return enter_name(k, level->folder, name->name, e);
    if (type == DT_REG)
        return add_file(k, level->folder, name->name, e);
    return type == DT_LNK ? add_symlink(k, level->folder, name->name, e) : leave_out(k);
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
        if (progress != NULL && atomic_load(&progress->stop))
            return error_set(e, ERROR_CANCELLED, "the copy was stopped");
        if (level->next == level->names.count) {
            leave(k);
            continue;
        }
        set_length(k, level->path_length);
        int result = look_at(k, &level->names.name[level->next++], e);
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
