#include "daemon/torusd/tree/place_ids.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/torusd/engine/digest.h"

uint64_t place_id(const char *path)
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

uint32_t place_ids_add_source(uint64_t *list, uint32_t count, const char *path)
{
    char above[PATH_MAX];
    uint64_t id = place_id(path);

    (void)snprintf(above, sizeof above, "%s", path);
    if (id == 0)
        return count;
    count = add(list, count, id | PLACE_SOURCE);
    while (go_up(above))
        if ((id = place_id(above)) != 0)
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

enum place_relation place_ids_compare(const uint64_t *list, uint32_t count, const char *target)
{
    char above[PATH_MAX];
    uint64_t id = place_id(target);

    if (id != 0 && has(list, count, id | PLACE_SOURCE))
        return PLACE_EQUAL;
    if (id != 0 && has(list, count, id))
        return PLACE_ABOVE;
    (void)snprintf(above, sizeof above, "%s", target);
    while (go_up(above))
        if ((id = place_id(above)) != 0 && has(list, count, id | PLACE_SOURCE))
            return PLACE_INSIDE;
    return PLACE_APART;
}
