#include "daemon/torusd/disk/staging.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/torusd/disk/attributes.h"
#include "proto/text.h"

#define NAME_KEPT 200u /* bytes of the name of a target that its staging has, if it is longer */
#define TRIES 10u      /* to make folders that others remove */

/* --- names --- */

/* Names that become too long end with a digest. */
void staging_name_copy(const char *target, char out[NAME_MAX + 1])
{
    uint8_t digest[8];
    char hex[2 * sizeof digest + 1];

    if (strcmp(target, ".") == 0) {
        (void)strcpy(out, STAGING_COPY);
    } else if (strlen(target) <= NAME_KEPT) {
        (void)snprintf(out, NAME_MAX + 1, ".%.*s" STAGING_COPY, (int)NAME_KEPT, target);
    } else {
        (void)crypto_generichash(digest, sizeof digest, (const uint8_t *)target, strlen(target),
                                 NULL, 0);
        (void)sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
        (void)snprintf(out, NAME_MAX + 1, ".%.*s-%s" STAGING_COPY, (int)NAME_KEPT, target, hex);
    }
}

bool staging_is_name(const char *name)
{
    size_t length = strlen(name), suffix = strlen(STAGING_COPY);

    return name[0] == '.' && length >= suffix && strcmp(name + length - suffix, STAGING_COPY) == 0;
}

bool staging_is_path(const char *path)
{
    char name[NAME_MAX + 1];

    for (size_t length; *path != '\0'; path += length + (path[length] == '/')) {
        length = strcspn(path, "/");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, path);
        if (staging_is_name(name))
            return true;
    }
    return false;
}

void staging_set_path(struct staging *s, const char *path)
{
    (void)snprintf(s->path, sizeof s->path, "%s", path);
    for (size_t end = strlen(s->path); end > 1 && s->path[end - 1] == '/'; end--)
        s->path[end - 1] = '\0';
    (void)text_printable(s->printable, sizeof s->printable, s->path);
}

void staging_set_name(struct staging *s, const char *name)
{
    const size_t above =
        strcmp(s->target, ".") == 0 ? strlen(s->path) : (size_t)(strrchr(s->path, '/') - s->path);

    (void)snprintf(s->name, sizeof s->name, "%s", name);
    (void)snprintf(s->shown, sizeof s->shown, "%.*s/%s", (int)above, s->path, name);
}

/* --- folders above targets --- */

struct made_use {
    struct made_use *next;
    size_t root;             /* length of the root's path */
    char path[2 * PATH_MAX]; /* absolute */
};

struct made_folder {
    struct made_folder *next;
    char path[]; /* absolute */
};

void made_folders_init(struct made_folders *m)
{
    *m = (struct made_folders){0};
    (void)pthread_mutex_init(&m->lock, NULL);
}

/* Whether a path leads through a folder, or to it. */
static bool leads_through(const char *path, const char *folder)
{
    const size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static struct made_folder *find(const struct made_folders *m, const char *path)
{
    struct made_folder *folder = m->folders;

    while (folder != NULL && strcmp(folder->path, path) != 0)
        folder = folder->next;
    return folder;
}

/* Whether somebody else uses a folder. */
static bool is_used(const struct made_folders *m, const char *folder, const struct made_use *but)
{
    for (const struct made_use *use = m->uses; use != NULL; use = use->next)
        if (use != but && leads_through(use->path, folder))
            return true;
    return false;
}

/* Begins to use the folders down to s->place, whether they exist or not. */
static int enter(struct staging *s)
{
    struct made_use *use = calloc(1, sizeof *use);

    if (use == NULL)
        return -ENOMEM;
    (void)snprintf(use->path, sizeof use->path, "%s", s->roots->path[s->place.root]);
    use->root = strlen(use->path);
    if (strcmp(s->place.path, ".") != 0)
        (void)snprintf(use->path + use->root, sizeof use->path - use->root, "/%s", s->place.path);
    (void)pthread_mutex_lock(&s->made->lock);
    LL_PREPEND(s->made->uses, use);
    (void)pthread_mutex_unlock(&s->made->lock);
    s->use = use;
    return 0;
}

static void leave(struct made_folders *m, struct made_use *use, bool keep)
{
    (void)pthread_mutex_lock(&m->lock);
    LL_DELETE(m->uses, use);
    for (struct made_folder **at = &m->folders, *folder; (folder = *at) != NULL;) {
        if (keep ? leads_through(use->path, folder->path) : !is_used(m, folder->path, NULL)) {
            *at = folder->next;
            free(folder);
        } else {
            at = &folder->next;
        }
    }
    (void)pthread_mutex_unlock(&m->lock);
    free(use);
}

void staging_leave(struct staging *s, bool keep)
{
    if (s->use != NULL)
        leave(s->made, s->use, keep);
    s->use = NULL;
}

void made_folders_free(struct made_folders *m)
{
    while (m->uses != NULL)
        leave(m, m->uses, false);
    (void)pthread_mutex_destroy(&m->lock);
}

/* Notes that the folder with this path below the root has been made. Without memory it is not noted, and stays. */
static void add(const struct staging *s, const char *path)
{
    const size_t length = s->use->root + 1 + strlen(path);
    struct made_folder *folder = malloc(sizeof *folder + length + 1);

    if (folder == NULL)
        return;
    (void)snprintf(folder->path, length + 1, "%.*s/%s", (int)s->use->root, s->use->path, path);
    (void)pthread_mutex_lock(&s->made->lock);
    if (find(s->made, folder->path) == NULL) {
        LL_PREPEND(s->made->folders, folder);
        folder = NULL;
    }
    (void)pthread_mutex_unlock(&s->made->lock);
    free(folder);
}

/* Whether the folder with this path below the root was made, and has no other user. */
static bool is_unused(const struct staging *s, const char *path)
{
    char whole[sizeof s->use->path];

    (void)snprintf(whole, sizeof whole, "%.*s/%s", (int)s->use->root, s->use->path, path);
    (void)pthread_mutex_lock(&s->made->lock);
    const bool unused = find(s->made, whole) != NULL && !is_used(s->made, whole, s->use);
    (void)pthread_mutex_unlock(&s->made->lock);
    return unused;
}

/* Divides a path of a place, in place, into that of the folder above and the name in it, which it returns. */
static const char *split(char *path, const char **above)
{
    char *slash = strrchr(path, '/');

    *above = slash != NULL ? path : ".";
    if (slash == NULL)
        return path;
    *slash = '\0';
    return slash + 1;
}

/* Opens the deepest folder that exists, and sets *missing to the number of those below it. */
static int open_deepest(const struct staging *s, unsigned *missing)
{
    char path[PATH_MAX];
    const char *at = path;
    int folder;

    (void)strcpy(path, s->place.path);
    *missing = 0;
    while ((folder = roots_open_folder(s->roots, &s->place, at)) == -ENOENT &&
           strcmp(at, ".") != 0) {
        (void)split(path, &at);
        ++*missing;
    }
    return folder;
}

/* Makes one folder, which is noted by its path below the root, and moves s->above down to it. */
static int make_one(struct staging *s, const char *path)
{
    const struct file_system *files = s->roots->files;
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const int made = files->make_folder(files->context, s->above, name, ATTRIBUTES_PRIVATE);
    struct attributes a;

    if (made == 0)
        add(s, path);
    else if (made != -EEXIST)
        return made;
    int inner = files->open_folder(files->context, s->above, name);
    if (inner < 0)
        return inner;
    int result = made == 0 ? attributes_of_new(files, inner, s->output_mode, &a) : 0;
    if (result == 0 && made == 0)
        result = attributes_set(files, inner, &a);
    if (result >= 0)
        result = files->sync(files->context, s->above);
    files->close(files->context, result < 0 ? inner : s->above);
    if (result < 0)
        return result;
    s->above = inner;
    return 0;
}

/* Makes the last `missing` folders, one after the other. */
static int make_missing(struct staging *s, unsigned missing)
{
    char path[PATH_MAX];
    int result = 0;

    for (; missing > 0 && result == 0; missing--) {
        size_t length = strlen(s->place.path);
        for (unsigned left = missing - 1; left > 0 && length > 0; left--)
            while (length > 0 && s->place.path[--length] != '/')
                ;
        (void)snprintf(path, sizeof path, "%.*s", (int)length, s->place.path);
        result = make_one(s, path);
    }
    return result;
}

int staging_open_above(struct staging *s, struct error *e)
{
    const bool makes = s->made != NULL;
    unsigned missing, tries = makes ? TRIES : 1;
    int result = makes && s->use == NULL ? enter(s) : 0;

    if (result < 0)
        return result;
    do {
        file_system_close(s->roots->files, &s->above);
        result = s->above = open_deepest(s, &missing);
        if (result >= 0 && s->check_above != NULL && s->check_above(s, missing, e) != 0)
            return 1;
        if (result >= 0)
            result = missing == 0 ? 0 : makes ? make_missing(s, missing) : -ENOENT;
    } while (result == -ENOENT && --tries > 0);
    if (result < 0)
        file_system_close(s->roots->files, &s->above);
    return result;
}

void staging_remove_made(struct staging *s, unsigned made)
{
    const struct file_system *files = s->roots->files;
    char path[PATH_MAX];
    const char *at = path, *name;

    (void)strcpy(path, s->place.path);
    for (unsigned i = 0; strcmp(at, ".") != 0; i++) {
        const bool own = s->use != NULL ? is_unused(s, path) : i < made;
        name = split(path, &at);
        if (!own)
            continue;
        int above = roots_open_folder(s->roots, &s->place, at);
        int result = above < 0 ? above : files->remove_folder(files->context, above, name);
        if (above >= 0 && (result == 0 || result == -ENOENT)) {
            file_system_close(files, &s->above);
            s->above = above;
        } else {
            file_system_close(files, &above);
        }
        if (result < 0 && result != -ENOENT)
            return;
    }
}

/* --- the staging --- */

int staging_make(struct staging *s, struct error *e)
{
    const struct file_system *files = s->roots->files;
    int result = -ENOENT;

    for (unsigned tries = 0;; tries++) {
        result = files->make_folder(files->context, s->above, s->name, ATTRIBUTES_PRIVATE);
        if (result != -ENOENT || s->use == NULL || tries == TRIES || strcmp(s->target, ".") == 0)
            return result;
        result = staging_open_above(s, e);
        if (result != 0)
            return result;
    }
}

/* Checks that the folder with this name is the open one. */
static int check_named(const struct staging *s, const char *name, int folder)
{
    const struct file_system *files = s->roots->files;
    struct file_status open, named;
    int result = files->status(files->context, folder, &open);

    if (result == 0)
        result = files->status_at(files->context, s->above, name, &named);
    if (result == 0 && (open.device != named.device || open.number != named.number))
        result = -ESTALE;
    return result == -ENOENT ? -ESTALE : result;
}

int staging_check_open(const struct staging *s)
{
    return check_named(s, s->name, s->folder);
}

int staging_lock(const struct staging *s, const char *name)
{
    const struct file_system *files = s->roots->files;
    int folder = files->open_folder(files->context, s->above, name);

    if (folder < 0)
        return folder;
    int result = files->lock(files->context, folder);
    if (result == 0)
        result = check_named(s, name, folder);
    if (result < 0)
        files->close(files->context, folder);
    return result < 0 ? result : folder;
}

int staging_remove_folder(const struct staging *s)
{
    const struct file_system *files = s->roots->files;
    int result = staging_check_open(s);

    return result < 0 ? result : files->remove_folder(files->context, s->above, s->name);
}

void staging_close(struct staging *s)
{
    if (s->roots != NULL) { /* it has been looked for */
        file_system_close(s->roots->files, &s->folder);
        file_system_close(s->roots->files, &s->above);
    }
    staging_leave(s, false);
}

/* --- others that write to the same target --- */

int staging_rival(const char *who, const char *path, struct error *e)
{
    return error_set(e, ERROR_BUSY, "%s is writing to %s: wait for its end, or stop it", who, path);
}

int staging_shared(const char *path, struct error *e)
{
    return error_set(e, ERROR_REFUSED,
                     "target %s is also the target of another node: put %%r (the node's rank) into "
                     "its path",
                     path);
}

struct looking {
    const struct staging *staging;
    const char *id;
    bool (*in_doubt)(const struct staging *s, const char *id_and_rank, const char *name);
    char stem[NAME_MAX + 2]; /* what the names of the stagings of exchanges begin with */
    char copy[NAME_MAX + 1];
    struct error *error;
};

static void look_at(void *argument, const char *name)
{
    const struct looking *l = argument;
    const struct staging *s = l->staging;
    const bool copy = strcmp(name, l->copy) == 0;
    const size_t stem = strlen(l->stem), id = l->id != NULL ? strlen(l->id) : 0;

    if (l->error->code != ERROR_NONE || strcmp(name, s->name) == 0 ||
        (!copy && strncmp(name, l->stem, stem) != 0))
        return;
    if (!copy && id > 0 && strncmp(name + stem, l->id, id) == 0 && name[stem + id] == '-') {
        (void)staging_shared(s->printable, l->error);
        return;
    }
    int folder = staging_lock(s, name);
    if (folder == -EWOULDBLOCK)
        (void)staging_rival(copy     ? "a copy"
                            : id > 0 ? "another exchange"
                                     : "an exchange",
                            s->printable, l->error);
    else if (!copy && id > 0 && l->in_doubt(s, name + stem, name))
        (void)error_set(l->error, ERROR_BUSY,
                        "target %s is kept for an exchange whose outcome is in doubt: %s",
                        s->printable, name);
    file_system_close(s->roots->files, &folder);
}

int staging_check_rivals(const struct staging *s, const char *id,
                         bool (*in_doubt)(const struct staging *s, const char *id_and_rank,
                                          const char *name),
                         struct error *e)
{
    const struct file_system *files = s->roots->files;
    struct looking l = {.staging = s, .id = id, .in_doubt = in_doubt, .error = e};

    *e = (struct error){0};
    (void)snprintf(l.stem, sizeof l.stem, ".%.*s.torusd-", NAME_MAX - 10, s->target);
    staging_name_copy(s->target, l.copy);
    const int result = files->list(files->context, s->above, look_at, &l);
    if (result < 0)
        return error_set(e, ERROR_IO, "the folder above %s cannot be read: %s", s->printable,
                         strerror(-result));
    return e->code == ERROR_NONE ? 0 : -1;
}
