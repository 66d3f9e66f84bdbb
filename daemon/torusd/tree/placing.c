#include "daemon/torusd/tree/placing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/tree/extras.h"
#include "daemon/torusd/tree/placing_record.h"

#define PRIVATE 0700

void placing_init(struct placing *p)
{
    const struct staging *s = p->staging;

    tree_at_init(&p->target, s->above, s->target, s->path);
    tree_at_init(&p->target_links, s->above, s->target, s->path);
    tree_at_init(&p->built, s->folder, STAGING_TREE, s->shown);
    tree_at_init(&p->built_links, s->folder, STAGING_TREE, s->shown);
    p->stack = (struct folder_stack){.at = &p->built};
    p->building = false;
    p->removed = p->changed_since = 0;
    p->first_changed[0] = '\0';
    p->uncounted.may_own = p->metadata->may_own;
    p->uncounted.stored = p->metadata->stored;
}

static void forget_folders(struct placing *p)
{
    tree_at_close(&p->target);
    tree_at_close(&p->target_links);
    tree_at_close(&p->built);
    tree_at_close(&p->built_links);
}

void placing_free(struct placing *p)
{
    forget_folders(p);
    folder_stack_free(&p->stack);
}

/* --- the new folder that is being built --- */

/* A copy that was interrupted while it was put in place may have begun to build the folder. */
static int begin_build(struct placing *p, const char *path)
{
    if (mkdirat(p->staging->folder, STAGING_TREE, PRIVATE) != 0 && errno != EEXIST)
        return -errno;
    p->building = true;
    p->build_length = strlen(path);
    memcpy(p->build, path, p->build_length + 1);
    return 0;
}

/* Renames the new folder. To rename a folder out of another one, a process needs to be allowed to write to it, unless it
 * is root: a folder whose owner may not write gets its mode afterwards. Returns 0 or -errno. */
static int rename_build(const struct placing *p, int folder, const char *name)
{
    const int staging = p->staging->folder;
    struct stat st;
    int build = openat(staging, STAGING_TREE, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int result = build >= 0 && fstat(build, &st) == 0 ? 0 : -errno;
    const bool closed = result == 0 && (st.st_mode & S_IWUSR) == 0 && st.st_uid == geteuid() &&
                        faccessat(staging, STAGING_TREE, W_OK, AT_EACCESS) != 0;

    if (closed)
        result = tree_at_set_mode(build, (st.st_mode & 07777u) | S_IWUSR);
    if (result == 0 && renameat(staging, STAGING_TREE, folder, name) != 0)
        result = -errno;
    if (closed && result == 0)
        result = tree_at_set_mode(build, st.st_mode & 07777u);
    if (build >= 0)
        (void)close(build);
    return result;
}

/* Gives the new folder its name, when everything in it is there. */
static int end_build(struct placing *p, struct error *e)
{
    const char *name;

    if (folder_stack_leave(&p->stack, NULL, e) != 0)
        return -1;
    p->building = false;
    tree_at_close(&p->built);
    tree_at_close(&p->built_links);
    int folder = tree_at_parent(&p->target, p->build, &name);
    int result = folder < 0 ? folder : rename_build(p, folder, name);
    return result == 0 ? 0 : tree_at_failed(&p->target, p->build, "put in place", -result, e);
}

/* --- folders --- */

/* Makes sure that the owner can change what is in an existing folder; its mode is set at the end. */
static int open_for_changes(int folder, const char *name, const struct stat *st)
{
    if ((st->st_mode & PRIVATE) == PRIVATE || st->st_uid != geteuid() || geteuid() == 0)
        return 0;
    return fchmodat(folder, name, (st->st_mode & 07777u) | PRIVATE, AT_SYMLINK_NOFOLLOW) == 0
               ? 0
               : -errno;
}

/* Makes a folder, or begins to build it. `alone`: it is made without waiting for what belongs into it. */
static int make_folder(struct placing *p, const struct entry *entry, bool alone, struct error *e)
{
    const char *path, *name;
    bool in_build = placing_is_in_build(p, entry->path);
    struct tree_at *at = placing_tree(p, entry->path, &path);
    int folder = tree_at_parent(at, path, &name), result = folder < 0 ? folder : 0;

    if (result == 0 && !in_build && !alone) {
        result = begin_build(p, entry->path);
        in_build = true;
        path = "";
    } else if (result == 0 && mkdirat(folder, name, PRIVATE) != 0 && errno != EEXIST) {
        result = -errno;
    }
    if (result < 0)
        return tree_at_failed(at, path, "made", -result, e);
    return in_build ? folder_stack_push(&p->stack, p->metadata, entry, path, e) : 0;
}

static int place_folder(struct placing *p, const struct entry *entry, bool alone, struct error *e)
{
    const char *path, *name;
    struct stat st;
    bool mount;

    if (placing_is_same(p, entry) && geteuid() == 0)
        return 0;
    struct tree_at *at = placing_tree(p, entry->path, &path);
    int folder = tree_at_parent(at, path, &name);
    int result = folder < 0 ? folder : tree_at_status(folder, name, &st, &mount);
    if (result == 0 && S_ISDIR(st.st_mode)) {
        result = open_for_changes(folder, name, &st);
        if (result == 0)
            return at == &p->built ? folder_stack_push(&p->stack, p->metadata, entry, path, e) : 0;
    } else if (result == 0 && placing_clear_way(p, at, path, e) != 0) {
        return -1;
    }
    if (result != 0 && result != -ENOENT)
        return tree_at_failed(at, path, "made", -result, e);
    return make_folder(p, entry, alone, e);
}

/* --- passes through the manifest --- */

static int place_entry(struct placing *p, const struct entry *entry, struct error *e)
{
    if (p->building) {
        if (!placing_is_in_build(p, entry->path)) {
            if (end_build(p, e) != 0)
                return -1;
        } else {
            const char *path;
            (void)placing_tree(p, entry->path, &path);
            if (folder_stack_leave(&p->stack, path, e) != 0)
                return -1;
        }
    }
    switch (entry->kind) {
    case ENTRY_FOLDER:
        return place_folder(p, entry, p->rules->as_it_comes, e);
    case ENTRY_FILE:
        return placing_file(p, entry, e);
    case ENTRY_SYMLINK:
        return placing_symlink(p, entry, e);
    default:
        return placing_hardlink(p, entry, e);
    }
}

static int make_folder_only(struct placing *p, const struct entry *entry, struct error *e)
{
    return entry->kind == ENTRY_FOLDER ? place_folder(p, entry, true, e) : 0;
}

/* Gives a folder that is in place what differs, when the walk leaves it. */
static int finish_folder(struct placing *p, const struct entry *entry, struct error *e)
{
    if (folder_stack_leave(&p->stack, entry->path, e) != 0)
        return -1;
    if (entry->kind != ENTRY_FOLDER)
        return 0;
    bool counted = p->state != NULL &&
                   (state_of(p->state, entry->index) == STATE_METADATA ||
                    (state_of(p->state, entry->index) == STATE_NEW && p->rules->as_it_comes));
    return folder_stack_push(&p->stack, counted ? p->metadata : &p->uncounted, entry, entry->path,
                             e);
}

static int each_entry(struct placing *p,
                      int (*each)(struct placing *p, const struct entry *entry, struct error *e),
                      struct error *e)
{
    struct manifest_cursor *cursor = manifest_cursor_new(p->manifest);
    struct entry entry;
    int result = cursor == NULL ? error_set(e, ERROR_MEMORY, "out of memory") : 1;

    while (result == 1) {
        result = manifest_next(cursor, &entry, e);
        if (result == 1 && each(p, &entry, e) != 0)
            result = -1;
    }
    manifest_cursor_free(cursor);
    return result;
}

/* Begins with the folder of the target, if the copy has no entry for it. */
static int begin(struct placing *p, struct error *e)
{
    const struct staging *s = p->staging;
    struct stat st;
    bool mount;

    if (!p->rules->into || p->manifest->entries == 0)
        return 0;
    int result = tree_at_status(s->above, s->target, &st, &mount);
    if (result == -ENOENT && p->rules->as_it_comes)
        result = mkdirat(s->above, s->target, s->output_mode) == 0 ? 0 : -errno;
    else if (result == -ENOENT && (result = begin_build(p, "")) == 0)
        result = fchmodat(s->folder, STAGING_TREE, s->output_mode, 0) == 0 ? 0 : -errno;
    return result == 0 ? 0 : tree_at_failed(&p->target, "", "made", -result, e);
}

static int finish_folders(struct placing *p, struct error *e)
{
    folder_stack_free(&p->stack);
    p->stack = (struct folder_stack){.at = &p->target};
    return each_entry(p, finish_folder, e) != 0 || folder_stack_leave(&p->stack, NULL, e) != 0 ? -1
                                                                                               : 0;
}

int placing_run(struct placing *p, struct error *e)
{
    struct removal removal = {.at = &p->target, .patterns = p->patterns};

    placing_init(p);
    int result = begin(p, e);
    if (result == 0)
        result = each_entry(p, place_entry, e);
    if (result == 0 && p->building)
        result = end_build(p, e);
    forget_folders(p);
    if (result == 0 && p->rules->delete)
        result = extras_remove(p->manifest, &removal, e);
    p->removed += removal.removed;
    forget_folders(p);
    if (result == 0)
        result = finish_folders(p, e);
    placing_free(p);
    return result;
}

int placing_make_folders(struct placing *p, struct error *e)
{
    return begin(p, e) != 0 || each_entry(p, make_folder_only, e) != 0 ? -1 : 0;
}

int placing_one(struct placing *p, const struct entry *entry, struct error *e)
{
    return placing_file(p, entry, e);
}
