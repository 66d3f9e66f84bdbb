#include "daemon/torusd/tree/attributes_of.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

/* Calls by name go through /proc, because there are none relative to a folder: "/proc/self/fd/N/NAME" is the name in
 * the folder that is open as N, and the calls with "l" do not follow it. */
#define NAME_PATH (NAME_MAX + 40)
#define LIST_MOST 65536u /* of all names; the system's limit */

static const char *path_of(const struct metadata_place *place, char out[NAME_PATH])
{
    (void)snprintf(out, NAME_PATH, "/proc/self/fd/%d/%s", place->folder, place->name);
    return out;
}

static ssize_t list_names(const struct metadata_place *place, char *list)
{
    char path[NAME_PATH];
    ssize_t length = place->file >= 0 ? flistxattr(place->file, list, LIST_MOST)
                                      : llistxattr(path_of(place, path), list, LIST_MOST);

    if (length < 0)
        return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
    return length;
}

static ssize_t get_value(const struct metadata_place *place, const char *name, void *value,
                         size_t most)
{
    char path[NAME_PATH];

    return place->file >= 0 ? fgetxattr(place->file, name, value, most)
                            : lgetxattr(path_of(place, path), name, value, most);
}

static int set_value(const struct metadata_place *place, const char *name, const void *value,
                     size_t length)
{
    char path[NAME_PATH];

    return place->file >= 0 ? fsetxattr(place->file, name, value, length, 0)
                            : lsetxattr(path_of(place, path), name, value, length, 0);
}

static int remove_value(const struct metadata_place *place, const char *name)
{
    char path[NAME_PATH];

    return place->file >= 0 ? fremovexattr(place->file, name)
                            : lremovexattr(path_of(place, path), name);
}

/* --- attributes of entries --- */

struct attribute {
    const char *name;
    const uint8_t *value;
    uint32_t length;
};

/* Takes the next attribute of an entry. Returns false at the end. */
static bool next_attribute(const struct entry *entry, size_t *at, struct attribute *a)
{
    size_t left = entry->attributes_length - *at;
    const char *name = (const char *)entry->attributes + *at;
    size_t length = left > 0 ? strnlen(name, left) : 0;

    if (left < length + 5 || length == 0)
        return false;
    const uint8_t *n = entry->attributes + *at + length + 1;
    a->name = name;
    a->length = n[0] | (uint32_t)n[1] << 8 | (uint32_t)n[2] << 16 | (uint32_t)n[3] << 24;
    a->value = n + 4;
    if (a->length > left - length - 5)
        return false;
    *at += length + 5 + a->length;
    return true;
}

static bool begins_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Whether copies have this attribute at all. Others belong to the machine (security.selinux). */
static bool is_copied(const char *name)
{
    return begins_with(name, "user.") ||
           (begins_with(name, "trusted.") && !begins_with(name, "trusted.overlay.")) ||
           strcmp(name, "security.capability") == 0 ||
           strcmp(name, "system.posix_acl_access") == 0 ||
           strcmp(name, "system.posix_acl_default") == 0;
}

static bool can_be_set(const struct metadata_rules *rules, const char *name)
{
    return is_copied(name) &&
           (rules->may_own || begins_with(name, "user.") || begins_with(name, "system."));
}

static bool entry_has(const struct entry *entry, const char *name)
{
    struct attribute a;

    for (size_t at = 0; next_attribute(entry, &at, &a);)
        if (strcmp(a.name, name) == 0)
            return true;
    return false;
}

static bool is_equal(const struct metadata_place *place, const struct attribute *a, uint8_t *buffer)
{
    return get_value(place, a->name, buffer, LIST_MOST) == (ssize_t)a->length &&
           memcmp(buffer, a->value, a->length) == 0;
}

/* --- comparing and setting --- */

/* Compares an attribute with what the target stores of it. Returns 1 if it differs, 0, and whether it is *refused. `buffer`
 * has room for two values. */
static int differs(const struct metadata_rules *rules, const struct metadata_place *place,
                   const struct attribute *a, uint8_t *buffer, bool *refused)
{
    uint8_t *value = buffer + LIST_MOST;

    if (is_equal(place, a, buffer))
        return 0;
    const ssize_t length =
        stored_attribute(rules->stored, a->name, a->value, a->length, value, LIST_MOST);
    if (length == STORED_REFUSED) {
        *refused = true;
        return 0;
    }
    const struct attribute stored = {a->name, value, (uint32_t)length};
    return length == STORED_UNKNOWN || !is_equal(place, &stored, buffer);
}

/* Finds the first name that this file has, and the entry lacks; NULL: none. */
static const char *find_extra(const struct metadata_rules *rules, const struct entry *entry,
                              const char *list, size_t length)
{
    for (size_t at = 0; at < length; at += strlen(list + at) + 1)
        if (can_be_set(rules, list + at) && !entry_has(entry, list + at))
            return list + at;
    return NULL;
}

int attributes_of_differ(const struct metadata_rules *rules, const struct metadata_place *place,
                         const struct entry *entry, bool *refused)
{
    struct attribute a;
    int result = 0;
    char *list = malloc(2 * LIST_MOST + 1);

    *refused = false;
    if (list == NULL)
        return -ENOMEM;
    ssize_t length = list_names(place, list);
    if (length < 0)
        result = (int)length;
    else
        list[length] = '\0';
    if (length > 0 && find_extra(rules, entry, list, (size_t)length) != NULL)
        result = 1;
    for (size_t at = 0; result == 0 && next_attribute(entry, &at, &a);) {
        if (!can_be_set(rules, a.name))
            *refused = true;
        else
            result = differs(rules, place, &a, (uint8_t *)list, refused);
    }
    free(list);
    return result;
}

static bool is_refusal(int error)
{
    return error == EPERM || error == EOPNOTSUPP || error == EINVAL || error == EACCES;
}

static int remove_extra(const struct metadata_rules *rules, const struct metadata_place *place,
                        const struct entry *entry, char *list)
{
    ssize_t length = list_names(place, list);

    if (length < 0)
        return (int)length;
    for (ssize_t at = 0; at < length; at += (ssize_t)strlen(list + at) + 1)
        if (can_be_set(rules, list + at) && !entry_has(entry, list + at) &&
            remove_value(place, list + at) != 0 && errno != ENODATA && !is_refusal(errno))
            return -errno;
    return 0;
}

int attributes_of_set(const struct metadata_rules *rules, const struct metadata_place *place,
                      const struct entry *entry, bool *refused)
{
    struct attribute a;
    int result = 0;

    *refused = false;
    if (place->fresh && entry->attributes_length == 0)
        return 0;
    char *list = malloc(LIST_MOST + 1);
    if (list == NULL)
        return -ENOMEM;
    if (!place->fresh)
        result = remove_extra(rules, place, entry, list);
    for (size_t at = 0; result == 0 && next_attribute(entry, &at, &a);) {
        if (!can_be_set(rules, a.name))
            *refused = true;
        else if ((place->fresh || !is_equal(place, &a, (uint8_t *)list)) &&
                 set_value(place, a.name, a.value, a.length) != 0) {
            *refused = true;
            if (!is_refusal(errno))
                result = -errno;
        }
    }
    free(list);
    return result;
}
