#include "daemon/torusd/tree/walk_entry.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/tree/file_data.h"
#include "daemon/torusd/tree/shown_path.h"

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

static int add(struct entry_builder *b, const struct found *f, struct entry *entry, struct error *e)
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
    int result = attributes_read(&b->attributes, folder, &entry.attributes_length);

    result = take_attributes(b, f, &entry, result, e);
    return result == 0 ? add(b, f, &entry, e) : result;
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
        b, f, &entry, attributes_read_link(&b->attributes, folder, name, &entry.attributes_length),
        e);
    return result == 0 ? add(b, f, &entry, e) : result;
}

/* Adds another name of a file that has an entry. */
static int build_hardlink(struct entry_builder *b, const struct found *f, uint64_t linked,
                          struct error *e)
{
    struct entry entry = entry_of(f, ENTRY_HARDLINK);

    entry.link = b->link;
    entry.linked = linked;
    return add(b, f, &entry, e);
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
            b, f, &entry, attributes_read(&b->attributes, file, &entry.attributes_length), e);
    if (result == 0)
        result = add(b, f, &entry, e);
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
