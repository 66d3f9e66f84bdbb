/* Where entries are put, and what stands in their way. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/tree/placing_record.h"
#include "daemon/torusd/tree/removal.h"

bool placing_is_same(const struct placing *p, const struct entry *entry)
{
    return p->state != NULL && state_of(p->state, entry->index) == STATE_SAME;
}

struct metadata_rules *placing_rules(struct placing *p, const struct entry *entry)
{
    return placing_is_same(p, entry) ? &p->uncounted : p->metadata;
}

/* --- the new folder that is being built --- */

bool placing_is_in_build(const struct placing *p, const char *path)
{
    return p->building && (p->build_length == 0 ||
                           (strncmp(path, p->build, p->build_length) == 0 &&
                            (path[p->build_length] == '/' || path[p->build_length] == '\0')));
}

struct tree_at *placing_tree(struct placing *p, const char *whole, const char **path)
{
    *path = whole;
    if (!placing_is_in_build(p, whole))
        return &p->target;
    *path += p->build_length;
    if (**path == '/')
        ++*path;
    return &p->built;
}

int placing_clear_way(struct placing *p, struct tree_at *at, const char *path, struct error *e)
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
