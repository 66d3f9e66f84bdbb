#include "daemon/torusd/files/target/target_above.h"

#include <errno.h>
#include <string.h>

#include "daemon/torusd/files/target/target_names.h"

int target_open_above(const struct target *t, const char *path)
{
    return target_files(t)->open_folder(target_files(t)->context, roots_folder(t->roots, &t->above),
                                        path);
}

int target_open_existing(const struct target *t, unsigned *missing)
{
    char path[PATH_MAX];
    int folder;

    (void)strcpy(path, t->above.path);
    *missing = 0;
    while ((folder = target_open_above(t, path)) == -ENOENT && strcmp(path, ".") != 0) {
        if (target_cut_last(path) == NULL)
            (void)strcpy(path, ".");
        ++*missing;
    }
    return folder;
}

/* Returns the part of a path before its last `missing` components; "" if nothing is left. */
static const char *last_components(const char *path, unsigned missing)
{
    const char *at = path + strlen(path);

    while (missing > 0 && at > path)
        if (*--at == '/' && --missing == 0)
            return at + 1;
    return at;
}

/* Gives a folder that was made above the target its final mode. Returns 0 or -errno. */
static int open_new(const struct target *t, int folder)
{
    struct attributes a;
    int result = attributes_of_new(target_files(t), folder, t->output_mode, &a);

    if (result == 0)
        result = attributes_set(target_files(t), folder, &a);
    return result < 0 ? result : 0;
}

/* Notes that the folder above the target was made that is followed by `rest` in the path; NULL: the last one. */
static void note_made(const struct target *t, const char *rest)
{
    const size_t behind = rest != NULL ? strlen(rest) + 1 : 0;
    char path[PATH_MAX];

    (void)strcpy(path, t->above.path);
    path[strlen(path) - behind] = '\0';
    made_folders_add(t->made, t->use, path);
}

int target_make_missing(struct target *t)
{
    const struct file_system *files = target_files(t);
    char names[PATH_MAX], *rest = names, *name;

    (void)strcpy(names, last_components(t->above.path, t->entry.made));
    while (t->entry.made > 0 && (name = strsep(&rest, "/")) != NULL) {
        int made = files->make_folder(files->context, t->parent, name, ATTRIBUTES_PRIVATE);
        if (made == 0)
            note_made(t, rest);
        else if (made != -EEXIST)
            return made;
        int folder = files->open_folder(files->context, t->parent, name);
        if (folder < 0)
            return folder;
        int result = made == 0 ? open_new(t, folder) : 0;
        if (result == 0)
            result = target_sync_one(t, t->parent);
        if (result < 0) {
            target_close_one(t, &folder);
            return result;
        }
        target_close_one(t, &t->parent);
        t->parent = folder;
    }
    return 0;
}

/* Whether the folder with this path, which is `above` levels above the target's, is the target's to remove. */
static bool is_own(const struct target *t, const char *path, unsigned above)
{
    return t->use != NULL ? made_folders_unused(t->made, t->use, path) : above < t->entry.made;
}

void target_remove_made(struct target *t)
{
    const struct file_system *files = target_files(t);
    char path[PATH_MAX], *name = path;

    (void)strcpy(path, t->above.path);
    for (unsigned i = 0; name != NULL && strcmp(path, ".") != 0; i++) {
        const bool own = is_own(t, path, i);
        name = target_cut_last(path);
        if (!own)
            continue;
        int folder = target_open_above(t, name != NULL ? path : ".");
        int result = folder < 0
                         ? folder
                         : files->remove_folder(files->context, folder, name != NULL ? name : path);
        if (result < 0 && result != -ENOENT) {
            target_close_one(t, &folder);
            return;
        }
        if (folder >= 0) {
            target_close_one(t, &t->parent);
            t->parent = folder;
        }
    }
}
