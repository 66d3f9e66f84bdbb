#include "daemon/torusd/tree/install.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/lib/base/grow.h"
#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/disk/file_stamp.h"
#include "daemon/torusd/tree/arrivals.h"
#include "daemon/torusd/tree/file_data.h"
#include "daemon/torusd/tree/metadata.h"
#include "daemon/torusd/tree/removal.h"

/* --- folders that the walk is in --- */

/* Adds an existing folder, whose entry has the path `path` in the tree `at`, and sets its attributes. Must be below the
 * last one. Returns 0, or -1 with *e. */
static int folder_stack_push(struct folder_stack *stack, struct metadata_rules *rules,
                             const struct entry *entry, const char *path, struct error *e)
{
    struct metadata_place place = {.file = -1};
    bool refused = false;

    if (GROW(stack->level, stack->count, stack->room) != 0)
        return tree_at_failed(stack->at, path, "changed", ENOMEM, e);
    place.folder = tree_at_parent(stack->at, path, &place.name);
    int result =
        place.folder < 0 ? place.folder : attributes_of_differ(rules, &place, entry, &refused);
    if (result == 1)
        result = attributes_of_set(rules, &place, entry, &refused);
    if (result < 0)
        return tree_at_failed(stack->at, path, "given its attributes", -result, e);
    if (refused)
        atomic_fetch_add(&rules->not_attributed, 1);
    struct folder_level *level = &stack->level[stack->count++];
    *level = (struct folder_level){strlen(path), *entry, rules};
    level->entry.attributes = NULL;
    level->entry.attributes_length = 0;
    memcpy(stack->path, path, level->length + 1);
    return 0;
}

static int leave_one(struct folder_stack *stack, struct error *e)
{
    struct folder_level *level = &stack->level[--stack->count];
    struct metadata_place place = {.file = -1, .no_attributes = true};
    struct stat st;
    bool mount;

    stack->path[level->length] = '\0';
    place.folder = tree_at_parent(stack->at, stack->path, &place.name);
    int result =
        place.folder < 0 ? place.folder : tree_at_status(place.folder, place.name, &st, &mount);
    if (result == 0 && !S_ISDIR(st.st_mode))
        result = -ENOTDIR;
    if (result == 0)
        result = metadata_set(level->rules, &place, &st, &level->entry);
    return result == 0 ? 0 : tree_at_failed(stack->at, stack->path, "changed", -result, e);
}

/* Leaves all folders that do not hold `path` (NULL: all), and gives them what they lack. Returns 0, or -1 with *e. */
static int folder_stack_leave(struct folder_stack *stack, const char *path, struct error *e)
{
    while (stack->count > 0) {
        size_t length = stack->level[stack->count - 1].length;
        if (path != NULL && manifest_path_is_in(path, stack->path, length))
            return 0;
        if (leave_one(stack, e) != 0)
            return -1;
    }
    return 0;
}

static void folder_stack_free(struct folder_stack *stack)
{
    free(stack->level);
    stack->level = NULL;
    stack->count = stack->room = 0;
}

/* Where entries are put, and what stands in their way. */

/* Whether the entry was found unchanged when the trees were compared. */
static bool install_is_same(const struct install *p, const struct entry *entry)
{
    return p->state != NULL && state_of(p->state, entry->index) == STATE_SAME;
}

/* Where it is counted that an owner or attributes could not be set: once for each entry. */
static struct metadata_rules *install_rules(struct install *p, const struct entry *entry)
{
    return install_is_same(p, entry) ? &p->uncounted : p->metadata;
}

/* --- the new folder that is being built --- */

/* Whether a path is in the new folder that is being built. */
static bool install_is_in_build(const struct install *p, const char *path)
{
    return p->building &&
           (manifest_path_is_in(path, p->build, p->build_length) || strcmp(path, p->build) == 0);
}

/* The tree in which an entry is made: the target, or the new folder that is being built; *path is its path there. */
static struct tree_at *install_tree(struct install *p, const char *whole, const char **path)
{
    *path = whole;
    if (!install_is_in_build(p, whole))
        return &p->target;
    *path += p->build_length;
    if (**path == '/')
        ++*path;
    return &p->built;
}

/* Removes what stands in the way of an entry of another kind: a file; a folder only if it is empty, or if the copy
 * deletes. Returns 0, or -1 with *e. */
static int install_clear_way(struct install *p, struct tree_at *at, const char *path,
                             struct error *e)
{
    struct removal removal = {.at = at, .patterns = p->patterns};
    const char *name;
    int folder = tree_at_parent(at, path, &name);

    if (folder < 0)
        return tree_at_failed(at, path, "removed", -folder, e);
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR)
        return tree_at_failed(at, path, "removed", errno, e);
    if (!p->rules->delete) {
        if (unlinkat(folder, name, AT_REMOVEDIR) == 0)
            return 0;
        return tree_at_failed(at, path, "replaced, because it is a folder", errno, e);
    }
    if (removal_of(&removal, path, e) != 0)
        return -1;
    p->removed += removal.removed > 0 ? removal.removed - 1 : 0;
    if (removal.stays)
        return tree_at_refused(at, path,
                               "is in the way, and has something that is not to be removed", e);
    return 0;
}

/* Files and links. */

/* Where an entry belongs. */
struct spot {
    struct tree_at *at;
    const char *path; /* in that tree */
    int folder;
    const char *name;
};

static int entry_failed(const struct spot *spot, const char *done, int error, struct error *e)
{
    return tree_at_failed(spot->at, spot->path, done, error, e);
}

static int find_spot(struct install *p, const struct entry *entry, struct spot *spot,
                     struct error *e)
{
    spot->at = install_tree(p, entry->path, &spot->path);
    spot->folder = tree_at_parent(spot->at, spot->path, &spot->name);
    return spot->folder >= 0 ? 0 : entry_failed(spot, "put in place", -spot->folder, e);
}

/* Renames a name of the staging to its place. Returns 0; 1: the staging does not have it; -1 with *e. */
static int move_entry(struct install *p, const char *from, struct spot *spot, struct error *e)
{
    for (unsigned tries = 0;; tries++) {
        if (renameat(p->staging->folder, from, spot->folder, spot->name) == 0)
            return 0;
        if (errno == ENOENT && faccessat(p->staging->folder, from, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
            return 1;
        if (errno != EISDIR || tries > 0)
            return entry_failed(spot, "put in place", errno, e);
        if (install_clear_way(p, spot->at, spot->path, e) != 0)
            return -1;
        spot->folder = tree_at_parent(spot->at, spot->path, &spot->name);
        if (spot->folder < 0)
            return entry_failed(spot, "put in place", -spot->folder, e);
    }
}

/* Whether a file that is there is the one of the entry; it may have other metadata. Returns 1, 0 or -errno. */
static int is_in_place(const struct install *p, const struct entry *entry, const struct spot *spot,
                       const struct stat *st)
{
    if (!S_ISREG(st->st_mode) || (uint64_t)st->st_size != entry->size)
        return 0;
    if (metadata_same_time(p->metadata, st->st_mtim, entry->modified))
        return 1;
    /* contents were compared, and only the time is to be set */
    return entry->has_digest ? compare_contents(spot->folder, spot->name, entry, NULL) : 0;
}

/* Sets what differs of an entry that is in place. */
static int set_entry_metadata(struct install *p, const struct entry *entry, const struct spot *spot,
                              const struct stat *st, struct error *e)
{
    struct metadata_place place = {.file = -1, .folder = spot->folder, .name = spot->name};
    int result =
        entry->kind == ENTRY_FILE && !metadata_same_time(p->metadata, st->st_mtim, entry->modified)
            ? 1
            : metadata_differ(&p->uncounted, &place, st, entry);

    if (result == 1)
        result = metadata_set(install_rules(p, entry), &place, st, entry);
    return result == 0 ? 0 : entry_failed(spot, "changed", -result, e);
}

static void note_change(struct install *p, const struct spot *spot)
{
    if (p->changed_since++ == 0)
        (void)tree_at_shown(spot->at, spot->path, p->first_changed, sizeof p->first_changed);
}

/* Put an entry in place whose folder is there. Return 0, or -1 with *e. */
static int install_file(struct install *p, const struct entry *entry, struct error *e)
{
    char name[STAGING_NAME_SIZE];
    struct spot spot;
    struct stat st;
    bool mount;

    if (install_is_same(p, entry))
        return 0;
    if (find_spot(p, entry, &spot, e) != 0)
        return -1;
    int result = move_entry(p, staging_file(entry->index, name), &spot, e);
    if (result != 1)
        return result;
    /* it has been put in place before, or it was there, and at most its metadata differ */
    result = tree_at_status(spot.folder, spot.name, &st, &mount);
    if (result == 0)
        result = is_in_place(p, entry, &spot, &st);
    if (result == -ENOENT || result == 0)
        return note_change(p, &spot), 0;
    if (result < 0)
        return entry_failed(&spot, "examined", -result, e);
    return set_entry_metadata(p, entry, &spot, &st, e);
}

/* Fills *e from errno: a link cannot be made. Returns -1. */
static int link_failed(const struct spot *spot, const char *kind, struct error *e)
{
    char done[64];

    (void)snprintf(done, sizeof done, "made (its file system may have no %s links)", kind);
    return entry_failed(spot, errno == EPERM || errno == EOPNOTSUPP ? done : "made", errno, e);
}

static int install_symlink(struct install *p, const struct entry *entry, struct error *e)
{
    struct metadata_place place = {.file = -1, .folder = p->staging->folder, .name = STAGING_LINK};
    char text[MANIFEST_PATH_MOST + 2];
    struct spot spot;
    struct stat st;
    bool mount;

    if (install_is_same(p, entry))
        return 0;
    if (find_spot(p, entry, &spot, e) != 0)
        return -1;
    ssize_t length = readlinkat(spot.folder, spot.name, text, sizeof text);
    if (length == (ssize_t)strlen(entry->link) && memcmp(text, entry->link, (size_t)length) == 0) {
        int result = tree_at_status(spot.folder, spot.name, &st, &mount);
        if (result < 0)
            return entry_failed(&spot, "examined", -result, e);
        return set_entry_metadata(p, entry, &spot, &st, e);
    }
    (void)unlinkat(p->staging->folder, STAGING_LINK, 0);
    if (symlinkat(entry->link, p->staging->folder, STAGING_LINK) != 0)
        return link_failed(&spot, "symbolic", e);
    int result = tree_at_status(place.folder, place.name, &st, &mount);
    if (result == 0)
        result = metadata_set(install_rules(p, entry), &place, &st, entry);
    if (result < 0)
        return entry_failed(&spot, "made", -result, e);
    return move_entry(p, STAGING_LINK, &spot, e) == 0 ? 0 : -1;
}

/* Makes a second name of an earlier file. It may have been put in place, or be in the new folder. */
static int install_hardlink(struct install *p, const struct entry *entry, struct error *e)
{
    struct spot spot;
    const char *path, *name;
    struct stat st, linked;
    bool mount;

    if (install_is_same(p, entry))
        return 0;
    if (find_spot(p, entry, &spot, e) != 0)
        return -1;
    struct tree_at *from = install_tree(p, entry->link, &path);
    from = from == &p->built ? &p->built_links : &p->target_links;
    int folder = tree_at_parent(from, path, &name);
    int result = folder < 0 ? folder : tree_at_status(folder, name, &linked, &mount);
    if (result == -ENOENT || (result == 0 && !S_ISREG(linked.st_mode)))
        return note_change(p, &spot), 0;
    if (result < 0)
        return tree_at_failed(from, path, "examined", -result, e);
    result = tree_at_status(spot.folder, spot.name, &st, &mount);
    if (result == 0 && st.st_ino == linked.st_ino && st.st_dev == linked.st_dev)
        return 0;
    (void)unlinkat(p->staging->folder, STAGING_LINK, 0);
    if (linkat(folder, name, p->staging->folder, STAGING_LINK, 0) != 0)
        return link_failed(&spot, "hard", e);
    return move_entry(p, STAGING_LINK, &spot, e) == 0 ? 0 : -1;
}

/* --- folders --- */

#define PRIVATE 0700

void install_init(struct install *p)
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

static void forget_folders(struct install *p)
{
    tree_at_close(&p->target);
    tree_at_close(&p->target_links);
    tree_at_close(&p->built);
    tree_at_close(&p->built_links);
}

void install_free(struct install *p)
{
    forget_folders(p);
    folder_stack_free(&p->stack);
}

/* --- the new folder that is being built --- */

/* A copy that was interrupted while it was put in place may have begun to build the folder. */
static int begin_build(struct install *p, const char *path)
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
static int rename_build(const struct install *p, int folder, const char *name)
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
    file_close(&build);
    return result;
}

/* Gives the new folder its name, when everything in it is there. */
static int end_build(struct install *p, struct error *e)
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
static int make_folder(struct install *p, const struct entry *entry, bool alone, struct error *e)
{
    const char *path, *name;
    bool in_build = install_is_in_build(p, entry->path);
    struct tree_at *at = install_tree(p, entry->path, &path);
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

static int place_folder(struct install *p, const struct entry *entry, bool alone, struct error *e)
{
    const char *path, *name;
    struct stat st;
    bool mount;

    if (install_is_same(p, entry) && geteuid() == 0)
        return 0;
    struct tree_at *at = install_tree(p, entry->path, &path);
    int folder = tree_at_parent(at, path, &name);
    int result = folder < 0 ? folder : tree_at_status(folder, name, &st, &mount);
    if (result == 0 && S_ISDIR(st.st_mode)) {
        result = open_for_changes(folder, name, &st);
        if (result == 0)
            return at == &p->built ? folder_stack_push(&p->stack, p->metadata, entry, path, e) : 0;
    } else if (result == 0 && install_clear_way(p, at, path, e) != 0) {
        return -1;
    }
    if (result != 0 && result != -ENOENT)
        return tree_at_failed(at, path, "made", -result, e);
    return make_folder(p, entry, alone, e);
}

/* --- passes through the manifest --- */

static int place_entry(void *context, const struct entry *entry, struct error *e)
{
    struct install *p = context;

    if (p->building) {
        if (!install_is_in_build(p, entry->path)) {
            if (end_build(p, e) != 0)
                return -1;
        } else {
            const char *path;
            (void)install_tree(p, entry->path, &path);
            if (folder_stack_leave(&p->stack, path, e) != 0)
                return -1;
        }
    }
    switch (entry->kind) {
    case ENTRY_FOLDER:
        return place_folder(p, entry, p->rules->as_it_comes, e);
    case ENTRY_FILE:
        return install_file(p, entry, e);
    case ENTRY_SYMLINK:
        return install_symlink(p, entry, e);
    default:
        return install_hardlink(p, entry, e);
    }
}

static int make_folder_only(void *context, const struct entry *entry, struct error *e)
{
    return entry->kind == ENTRY_FOLDER ? place_folder(context, entry, true, e) : 0;
}

/* Gives an installed folder the attributes that differ, when the walk leaves the folder. */
static int finish_folder(void *context, const struct entry *entry, struct error *e)
{
    struct install *p = context;

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

/* Begins with the folder of the target, if the copy has no entry for it. */
static int begin(struct install *p, struct error *e)
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

static int finish_folders(struct install *p, struct error *e)
{
    folder_stack_free(&p->stack);
    p->stack = (struct folder_stack){.at = &p->target};
    return manifest_each(p->manifest, finish_folder, p, e) != 0 ||
                   folder_stack_leave(&p->stack, NULL, e) != 0
               ? -1
               : 0;
}

int install_run(struct install *p, struct error *e)
{
    struct removal removal = {.at = &p->target, .patterns = p->patterns};

    install_init(p);
    int result = begin(p, e);
    if (result == 0)
        result = manifest_each(p->manifest, place_entry, p, e);
    if (result == 0 && p->building)
        result = end_build(p, e);
    forget_folders(p);
    if (result == 0 && p->rules->delete)
        result = extras_remove(p->manifest, &removal, e);
    p->removed += removal.removed;
    forget_folders(p);
    if (result == 0)
        result = finish_folders(p, e);
    if (result == 0)
        result = staging_sync(p->staging, e);
    install_free(p);
    return result;
}

int install_make_folders(struct install *p, struct error *e)
{
    return begin(p, e) != 0 || manifest_each(p->manifest, make_folder_only, p, e) != 0 ? -1 : 0;
}

int install_one(struct install *p, const struct entry *entry, struct error *e)
{
    return install_file(p, entry, e);
}

/* --- after a restart --- */

struct staged {
    const struct staging *staging;
    struct arrivals stamps;
};

static int check_staged(void *context, const struct entry *entry, struct error *e)
{
    const struct staged *s = context;

    return entry->kind == ENTRY_FILE ? arrivals_check_staged(&s->stamps, s->staging, entry, e) : 0;
}

/* Checks that all new files that are not in place yet are as they were when the copy was complete. Returns 0, or -1 with
 * *e. */
static int check_files(const struct staging *s, const struct manifest *manifest, struct error *e)
{
    struct staged staged = {.staging = s, .stamps = {.stamps = -1}};
    int result = arrivals_find_stamps(&staged.stamps, s, e);

    if (result == 0)
        file_stamp_warn_of_none(s->shown);
    if (result >= 0)
        result = manifest_each(manifest, check_staged, &staged, e);
    file_close(&staged.stamps.stamps);
    return result;
}

static int place_staged(struct staging *s, const struct complete *rules, int file,
                        struct install *p, struct error *e)
{
    struct metadata_rules metadata;
    struct stored stored;
    struct manifest manifest;
    struct stat st;

    if (fstat(file, &st) != 0)
        return staging_failed(s, "read", errno, e);
    if (manifest_open(&manifest, file, (uint64_t)st.st_size, e) != 0 ||
        check_files(s, &manifest, e) != 0)
        return -1;
    struct patterns *patterns =
        patterns_new((const char *const *)rules->pattern, rules->patterns, e);
    if (patterns == NULL)
        return -1;
    metadata_rules_init(&metadata);
    stored_open(&stored, s->above, s->folder);
    metadata.stored = &stored;
    *p = (struct install){.staging = s,
                          .manifest = &manifest,
                          .rules = rules,
                          .patterns = patterns,
                          .metadata = &metadata};
    int result = install_run(p, e);
    stored_close(&stored);
    patterns_free(patterns);
    return result;
}

static int resume(struct staging *s, const struct complete *rules, struct install *p,
                  struct error *e)
{
    if (staging_check(s, e) != 0)
        return -1;
    int file = openat(s->folder, STAGING_MANIFEST, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return staging_failed(s, "read", errno, e);
    int result = place_staged(s, rules, file, p, e);
    (void)close(file);
    return result == 0 ? 1 : -1;
}

int install_resume(struct staging *s, uint64_t *changed_since, char first[256], struct error *e)
{
    struct complete rules;
    struct install p;
    int result = complete_read(s, &rules, e);

    if (result == 1)
        result = resume(s, &rules, &p, e);
    complete_free(&rules);
    if (result == 1) {
        *changed_since = p.changed_since;
        (void)strcpy(first, p.first_changed);
    }
    return result;
}
