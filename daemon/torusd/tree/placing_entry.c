/* Files and links. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/tree/compare_contents.h"
#include "daemon/torusd/tree/placing_record.h"

/* Where an entry belongs. */
struct spot {
    struct tree_at *at;
    const char *path; /* in that tree */
    int folder;
    const char *name;
};

static int failed(const struct spot *spot, const char *done, int error, struct error *e)
{
    return tree_at_failed(spot->at, spot->path, done, error, e);
}

static int find_spot(struct placing *p, const struct entry *entry, struct spot *spot,
                     struct error *e)
{
    spot->at = placing_tree(p, entry->path, &spot->path);
    spot->folder = tree_at_parent(spot->at, spot->path, &spot->name);
    return spot->folder >= 0 ? 0 : failed(spot, "put in place", -spot->folder, e);
}

/* Renames a name of the staging to its place. Returns 0; 1: the staging does not have it; -1 with *e. */
static int move(struct placing *p, const char *from, struct spot *spot, struct error *e)
{
    for (unsigned tries = 0;; tries++) {
        if (renameat(p->staging->folder, from, spot->folder, spot->name) == 0)
            return 0;
        if (errno == ENOENT && faccessat(p->staging->folder, from, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
            return 1;
        if (errno != EISDIR || tries > 0)
            return failed(spot, "put in place", errno, e);
        if (placing_clear_way(p, spot->at, spot->path, e) != 0)
            return -1;
        spot->folder = tree_at_parent(spot->at, spot->path, &spot->name);
        if (spot->folder < 0)
            return failed(spot, "put in place", -spot->folder, e);
    }
}

/* Whether a file that is there is the one of the entry; it may have other metadata. Returns 1, 0 or -errno. */
static int is_in_place(const struct placing *p, const struct entry *entry, const struct spot *spot,
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
static int set_metadata(struct placing *p, const struct entry *entry, const struct spot *spot,
                        const struct stat *st, struct error *e)
{
    struct metadata_place place = {.file = -1, .folder = spot->folder, .name = spot->name};
    int result =
        entry->kind == ENTRY_FILE && !metadata_same_time(p->metadata, st->st_mtim, entry->modified)
            ? 1
            : metadata_differ(&p->uncounted, &place, st, entry);

    if (result == 1)
        result = metadata_set(placing_rules(p, entry), &place, st, entry);
    return result == 0 ? 0 : failed(spot, "changed", -result, e);
}

static void note_change(struct placing *p, const struct spot *spot)
{
    if (p->changed_since++ == 0)
        (void)tree_at_shown(spot->at, spot->path, p->first_changed, sizeof p->first_changed);
}

int placing_file(struct placing *p, const struct entry *entry, struct error *e)
{
    char name[STAGING_NAME_SIZE];
    struct spot spot;
    struct stat st;
    bool mount;

    if (placing_is_same(p, entry))
        return 0;
    if (find_spot(p, entry, &spot, e) != 0)
        return -1;
    int result = move(p, staging_file(entry->index, name), &spot, e);
    if (result != 1)
        return result;
    /* it has been put in place before, or it was there, and at most its metadata differ */
    result = tree_at_status(spot.folder, spot.name, &st, &mount);
    if (result == 0)
        result = is_in_place(p, entry, &spot, &st);
    if (result == -ENOENT || result == 0)
        return note_change(p, &spot), 0;
    if (result < 0)
        return failed(&spot, "examined", -result, e);
    return set_metadata(p, entry, &spot, &st, e);
}

int placing_symlink(struct placing *p, const struct entry *entry, struct error *e)
{
    struct metadata_place place = {.file = -1, .folder = p->staging->folder, .name = STAGING_LINK};
    char text[MANIFEST_PATH_MOST + 2];
    struct spot spot;
    struct stat st;
    bool mount;

    if (placing_is_same(p, entry))
        return 0;
    if (find_spot(p, entry, &spot, e) != 0)
        return -1;
    ssize_t length = readlinkat(spot.folder, spot.name, text, sizeof text);
    if (length == (ssize_t)strlen(entry->link) && memcmp(text, entry->link, (size_t)length) == 0) {
        int result = tree_at_status(spot.folder, spot.name, &st, &mount);
        if (result < 0)
            return failed(&spot, "examined", -result, e);
        return set_metadata(p, entry, &spot, &st, e);
    }
    (void)unlinkat(p->staging->folder, STAGING_LINK, 0);
    if (symlinkat(entry->link, p->staging->folder, STAGING_LINK) != 0)
        return failed(&spot, "made", errno, e);
    int result = tree_at_status(place.folder, place.name, &st, &mount);
    if (result == 0)
        result = metadata_set(placing_rules(p, entry), &place, &st, entry);
    if (result < 0)
        return failed(&spot, "made", -result, e);
    return move(p, STAGING_LINK, &spot, e) == 0 ? 0 : -1;
}

/* Makes a second name of an earlier file. It may have been put in place, or be in the new folder. */
int placing_hardlink(struct placing *p, const struct entry *entry, struct error *e)
{
    struct spot spot;
    const char *path, *name;
    struct stat st, linked;
    bool mount;

    if (placing_is_same(p, entry))
        return 0;
    if (find_spot(p, entry, &spot, e) != 0)
        return -1;
    struct tree_at *from = placing_tree(p, entry->link, &path);
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
        return failed(&spot, "made", errno, e);
    return move(p, STAGING_LINK, &spot, e) == 0 ? 0 : -1;
}
