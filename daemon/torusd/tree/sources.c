#include "daemon/torusd/tree/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/tree/manifest_format.h"
#include "daemon/torusd/tree/staging.h"

/* Finds the name of a source, its last component; allocates it. NULL with *e. */
static char *name_of(const char *path, struct error *e)
{
    struct shown_path shown;
    size_t end = strlen(path);

    while (end > 0 && path[end - 1] == '/')
        end--;
    const char *slash = memrchr(path, '/', end), *name = slash != NULL ? slash + 1 : path;
    size_t length = (size_t)(path + end - name);
    if (length == 0 || length > NAME_MOST || (length == 1 && name[0] == '.') ||
        (length == 2 && memcmp(name, "..", 2) == 0)) {
        (void)error_set(e, ERROR_USAGE,
                        "source %s does not end with a name: name the file or folder",
                        show_path(&shown, path, ""));
        return NULL;
    }
    char *copy = strndup(name, length);
    if (copy == NULL)
        (void)error_set(e, ERROR_MEMORY, "out of memory for a copy");
    return copy;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct walk_source *)a)->name, ((const struct walk_source *)b)->name);
}

static int check_names(const struct sources *s, struct error *e)
{
    struct shown_path a, b;

    for (uint32_t i = 1; i < s->count; i++)
        if (strcmp(s->source[i - 1].name, s->source[i].name) == 0)
            return error_set(
                e, ERROR_USAGE, "sources %.100s and %.100s have the same name: copy one at a time",
                show_path(&a, s->source[i - 1].path, ""), show_path(&b, s->source[i].path, ""));
    return 0;
}

/* Opens one source. Returns 0; a source that is missing, and may be, is not added. */
static int open_source(struct sources *s, uint32_t number, const struct roots *roots,
                       const struct tree_read_options *options, struct error *e)
{
    struct location place;
    struct file_status status;
    struct shown_path shown;
    char **text = &s->text[2 * number];

    text[0] = options->into ? name_of(options->path[number], e) : strdup("");
    text[1] = strdup(options->path[number]);
    if (text[0] == NULL || text[1] == NULL)
        return text[0] == NULL && options->into
                   ? -1
                   : error_set(e, ERROR_MEMORY, "out of memory for a copy");
    if (staging_is_path(options->path[number]))
        return error_set(e, ERROR_REFUSED,
                         "%s has a name that torusd gives to the new files of copies: name another "
                         "source",
                         show_path(&shown, options->path[number], ""));
    int file = roots_open(roots, options->path[number], &place, &status, e);
    if (file < 0 && e->code == ERROR_NONE && options->missing_ok)
        return 0;
    if (file < 0) {
        if (e->code == ERROR_NONE)
            e->code = ERROR_REFUSED;
        return -1;
    }
    s->source[s->count++] = (struct walk_source){.name = text[0], .path = text[1], .file = file};
    return 0;
}

int sources_open(struct sources *s, const struct roots *roots,
                 const struct tree_read_options *options, struct error *e)
{
    struct error ignored;

    *s = (struct sources){.system = roots->files, .roots = roots, .follow = options->copy_links};
    e = e != NULL ? e : &ignored;
    if (options->paths == 0 || (!options->into && options->paths != 1))
        return error_set(e, ERROR_USAGE, "a copy needs one source, or a folder for several");
    s->source = calloc(options->paths, sizeof *s->source);
    s->text = calloc(2 * (size_t)options->paths, sizeof *s->text);
    if (s->source == NULL || s->text == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a copy");
    s->texts = 2 * (size_t)options->paths;
    for (uint32_t i = 0; i < options->paths; i++)
        if (open_source(s, i, roots, options, e) != 0)
            return -1;
    qsort(s->source, s->count, sizeof *s->source, compare);
    return check_names(s, e);
}

void sources_close(struct sources *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        (void)close(s->source[i].file);
    for (size_t i = 0; i < s->texts; i++) /* also those of sources that are missing */
        free(s->text[i]);
    free(s->source);
    free(s->text);
    entry_numbers_free(s->numbers);
    *s = (struct sources){0};
}

/* Finds the source of an entry, and the path below it; "": the source itself. */
static const struct walk_source *source_of(const struct sources *s, const struct entry *entry,
                                           const char **below)
{
    uint32_t low = 0, high = s->count;

    if (s->source[0].name[0] == '\0') {
        *below = entry->path;
        return &s->source[0];
    }
    size_t length = strcspn(entry->path, "/");
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        int order = strncmp(s->source[middle].name, entry->path, length);
        if (order < 0 || (order == 0 && s->source[middle].name[length] == '\0'))
            low = middle;
        else
            high = middle;
    }
    *below = entry->path + length + (entry->path[length] == '/');
    return &s->source[low];
}

enum source_state { SOURCE_CHANGED, SOURCE_SAME, SOURCE_GROWN };

/* Compares a state with what an entry says. A file that has become longer may only have grown: its contents tell. For a
 * second name of a file, the entry of the first name has everything else. Returns a source_state, or -1 with *e. */
static int is_as_found(const struct sources *s, const struct entry *entry, const struct stat *st,
                       struct error *e)
{
    uint64_t number;
    mode_t kind = entry->kind == ENTRY_FOLDER    ? S_IFDIR
                  : entry->kind == ENTRY_SYMLINK ? S_IFLNK
                                                 : S_IFREG;

    if (entry_numbers_get(s->numbers, entry->index, &number, e) != 0)
        return -1;
    if ((st->st_mode & S_IFMT) != kind || st->st_ino != number)
        return SOURCE_CHANGED;
    if (entry->kind == ENTRY_HARDLINK)
        return SOURCE_SAME;
    if (entry->kind == ENTRY_FILE && (uint64_t)st->st_size != entry->size)
        return (uint64_t)st->st_size > entry->size ? SOURCE_GROWN : SOURCE_CHANGED;
    return st->st_mtim.tv_sec == entry->modified.tv_sec &&
                   st->st_mtim.tv_nsec == entry->modified.tv_nsec
               ? SOURCE_SAME
               : SOURCE_CHANGED;
}

int source_failed(const struct sources *s, const struct entry *entry, struct error *e)
{
    const char *below;
    int error = errno;
    const struct walk_source *source = source_of(s, entry, &below);

    if (entry->kind != ENTRY_FOLDER && found_says_changed(error) &&
        changing_leave_out(s->changing, entry->index, source->path, below) == CHANGING_LEFT_OUT)
        return CHANGING_LEFT_OUT;
    errno = error;
    (void)found_unreadable(source->path, below, e);
    return -1;
}

/* Returns 0, CHANGING_LEFT_OUT, or -1 with *e. */
static int compare_state(const struct sources *s, const struct entry *entry, const struct stat *st,
                         bool *grown, struct error *e)
{
    int result = is_as_found(s, entry, st, e);

    *grown = result == SOURCE_GROWN;
    if (result != SOURCE_CHANGED)
        return result < 0 ? -1 : 0;
    errno = 0;
    return source_failed(s, entry, e);
}

/* Another descriptor, or -errno. */
static int copy_of(int file)
{
    int copy = fcntl(file, F_DUPFD_CLOEXEC, 0);

    return copy < 0 ? -errno : copy;
}

int source_follow(void *sources, const struct walk_source *source, const char *below,
                  struct error *e)
{
    const struct sources *s = sources;
    char path[2 * PATH_MAX];
    struct file_status status;
    struct shown_path shown;
    struct location place;

    (void)snprintf(path, sizeof path, "%s%s%s", source->path, *below != '\0' ? "/" : "", below);
    int file = roots_open(s->roots, path, &place, &status, e);
    if (file >= 0)
        return file;
    if (e->code == ERROR_NONE)
        return error_set(e, ERROR_REFUSED,
                         "%s is a link that leads to nothing: leave it out with --exclude",
                         show_path(&shown, source->path, below));
    return error_wrap(e, "%s is a link, and --copy-links follows it",
                      show_path(&shown, source->path, below));
}

/* Opens a file of a source. Returns a descriptor or -errno. */
static int open_below(const struct sources *s, const struct walk_source *source, const char *below)
{
    struct error e;

    if (*below == '\0')
        return copy_of(source->file);
    int file = s->system->open_file(s->system->context, source->file, below);
    if (file != -ELOOP || !s->follow)
        return file;
    file = source_follow((void *)(uintptr_t)s, source, below, &e);
    return file >= 0 ? file : -ENOENT;
}

int source_open_file(const struct sources *s, const struct entry *entry, struct error *e)
{
    const char *below;
    const struct walk_source *source = source_of(s, entry, &below);
    struct stat st;
    bool grown;
    int file = open_below(s, source, below);

    if (file < 0) {
        errno = -file;
        return source_failed(s, entry, e);
    }
    int result = fstat(file, &st);
    result = result != 0 ? source_failed(s, entry, e) : compare_state(s, entry, &st, &grown, e);
    if (result == 0)
        return file;
    (void)close(file);
    return result;
}

/* Links on the way are followed here, which does no harm: the state that is found then is compared only, and the folder
 * that was replaced by a link is found, too. */
int source_check(const struct sources *s, const struct entry *entry, bool *grown, struct error *e)
{
    const char *below;
    const struct walk_source *source = source_of(s, entry, &below);
    struct stat st;
    int result;

    *grown = false;
    /* names that have come or gone change the time of a folder, and no file that is copied */
    if (entry->kind == ENTRY_FOLDER && s->changing != NULL && s->changing->skip)
        return 0;
    if ((*below == '\0'
             ? fstat(source->file, &st)
             : fstatat(source->file, below, &st, s->follow ? 0 : AT_SYMLINK_NOFOLLOW)) != 0)
        result = source_failed(s, entry, e);
    else
        result = compare_state(s, entry, &st, grown, e);
    return result == CHANGING_LEFT_OUT ? 0 : result;
}
