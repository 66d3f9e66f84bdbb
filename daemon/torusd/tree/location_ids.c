#include "daemon/torusd/tree/tree_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/torusd/engine/digest.h"
#include "proto/text.h"

const char *show_path(struct shown_path *out, const char *above, const char *below)
{
    char whole[2 * PATH_MAX];
    int length = snprintf(whole, sizeof whole, "%s%s%s", above, *below != '\0' ? "/" : "", below);
    size_t used = length < 0 ? 0 : (size_t)length;

    if (used >= sizeof whole)
        used = sizeof whole - 1;
    if (used < sizeof out->text)
        return text_printable(out->text, sizeof out->text, whole);
    memcpy(out->text, "...", 3);
    (void)text_printable(out->text + 3, sizeof out->text - 3, whole + used - (SHOWN_PATH - 4));
    return out->text;
}

/* --- where folders are --- */

uint64_t location_id(const char *path)
{
    struct statx st;

    if (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_BTIME, &st) != 0)
        return 0;
    const bool born = (st.stx_mask & STATX_BTIME) != 0;
    const uint64_t facts[] = {st.stx_ino,
                              st.stx_mode,
                              born,
                              (uint64_t)(born ? st.stx_btime.tv_sec : st.stx_ctime.tv_sec),
                              born ? st.stx_btime.tv_nsec : st.stx_ctime.tv_nsec,
                              born ? 0 : (uint64_t)st.stx_mtime.tv_sec,
                              born ? 0 : st.stx_mtime.tv_nsec};
    const uint64_t id = digest_bytes(facts, sizeof facts, 0) & ~(uint64_t)PLACE_SOURCE;

    return id != 0 ? id : 2;
}

/* Cuts the last name off an absolute path. Returns false at the top. */
static bool go_up(char *path)
{
    size_t end = strlen(path);

    while (end > 1 && path[end - 1] == '/')
        end--;
    while (end > 1 && path[end - 1] != '/')
        end--;
    while (end > 1 && path[end - 1] == '/')
        end--;
    path[end] = '\0';
    return end > 1;
}

static uint32_t add(uint64_t *list, uint32_t count, uint64_t id)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == id)
            return count;
    if (count < TREE_PLACES_MOST)
        list[count++] = id;
    return count;
}

uint32_t location_ids_add_source(uint64_t *list, uint32_t count, const char *path)
{
    char above[PATH_MAX];
    uint64_t id = location_id(path);

    (void)snprintf(above, sizeof above, "%s", path);
    if (id == 0)
        return count;
    count = add(list, count, id | PLACE_SOURCE);
    while (go_up(above))
        if ((id = location_id(above)) != 0)
            count = add(list, count, id);
    return count;
}

static bool has(const uint64_t *list, uint32_t count, uint64_t id)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == id)
            return true;
    return false;
}

enum location_relation location_ids_compare(const uint64_t *list, uint32_t count,
                                            const char *target)
{
    char above[PATH_MAX];
    uint64_t id = location_id(target);

    if (id != 0 && has(list, count, id | PLACE_SOURCE))
        return PLACE_EQUAL;
    if (id != 0 && has(list, count, id))
        return PLACE_ABOVE;
    (void)snprintf(above, sizeof above, "%s", target);
    while (go_up(above))
        if ((id = location_id(above)) != 0 && has(list, count, id | PLACE_SOURCE))
            return PLACE_INSIDE;
    return PLACE_APART;
}

/* --- users, and temporary files --- */

/* A user is counted before it takes the roots, and users are looked for after the roots were replaced, so a set that
 * has just been taken is not freed. */
const struct roots *tree_files_enter(struct tree_files *files)
{
    (void)atomic_fetch_add(&files->users, 1);
    return atomic_load(&files->roots);
}

void tree_files_leave(struct tree_files *files)
{
    (void)atomic_fetch_sub(&files->users, 1);
}

bool tree_files_are_unused(struct tree_files *files)
{
    return atomic_load(&files->users) == 0;
}

bool tree_stopped(const struct tree_progress *progress, struct error *e)
{
    if (progress == NULL || !atomic_load(&progress->stop))
        return false;
    (void)error_set(e, ERROR_CANCELLED, "the copy was stopped");
    return true;
}

/* For file systems that cannot make a file without a name. */
static int make_and_unlink(const char *folder)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/document.XXXXXX", folder);

    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int file = mkostemp(path, O_CLOEXEC);
    if (file >= 0)
        (void)unlink(path);
    return file;
}

int tree_files_temporary(const struct tree_files *files, struct error *e)
{
    int file = open(files->state_folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (file < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL))
        file = make_and_unlink(files->state_folder);
    if (file < 0)
        return error_set(e, ERROR_IO, "no temporary file can be made in state folder %s: %s",
                         files->state_folder, strerror(errno));
    return file;
}

int tree_files_temporary_failed(struct error *e)
{
    return error_set(e, ERROR_IO, "a temporary file in the state folder failed: %s",
                     errno == 0 ? "it is too short" : strerror(errno));
}
