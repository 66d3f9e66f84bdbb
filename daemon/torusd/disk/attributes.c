#include "daemon/torusd/disk/attributes.h"

#include <endian.h>
#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <string.h>
#include <sys/stat.h>

#define TRIAL ".torusd-trial" /* name of a folder that exists only for a moment */
#define FILE_BITS 0666u

/* --- access-control lists --- */

struct acl_list {
    uint8_t bytes[ACL_MOST];
    size_t length; /* 0: none */
};

static int read_list(const struct file_system *files, int folder, enum acl which,
                     struct acl_list *list)
{
    ssize_t length =
        files->read_acl(files->context, folder, which, list->bytes, sizeof list->bytes);

    list->length = length > 0 ? (size_t)length : 0;
    return length < 0 ? (int)length : 0;
}

static int write_list(const struct file_system *files, int folder, enum acl which,
                      const struct acl_list *list)
{
    return files->write_acl(files->context, folder, which, list->bytes, list->length);
}

/* Finds the entry with this tag; returns false if there is none. */
static bool find_entry(const struct acl_list *list, unsigned tag, size_t *offset)
{
    struct posix_acl_xattr_entry entry;

    for (size_t at = sizeof(struct posix_acl_xattr_header); at + sizeof entry <= list->length;
         at += sizeof entry) {
        memcpy(&entry, list->bytes + at, sizeof entry);
        *offset = at + offsetof(struct posix_acl_xattr_entry, e_perm);
        if (le16toh(entry.e_tag) == tag)
            return true;
    }
    return false;
}

static unsigned acl_permissions(const struct acl_list *list, unsigned tag)
{
    uint16_t permissions;
    size_t offset;

    if (!find_entry(list, tag, &offset))
        return 0;
    memcpy(&permissions, list->bytes + offset, sizeof permissions);
    return le16toh(permissions) & 7u;
}

static void set_acl_permissions(struct acl_list *list, unsigned tag, unsigned permissions)
{
    uint16_t value = htole16((uint16_t)permissions);
    size_t offset;

    if (find_entry(list, tag, &offset))
        memcpy(list->bytes + offset, &value, sizeof value);
}

/* Returns the tag of the entry that the group bits of a mode describe. */
static unsigned group_class(const struct acl_list *list)
{
    size_t offset;

    return find_entry(list, ACL_MASK, &offset) ? ACL_MASK : ACL_GROUP_OBJ;
}

/* Returns the largest mode that a file can have where the list is inherited. */
static mode_t inherited_mode(const struct acl_list *list)
{
    return acl_permissions(list, ACL_USER_OBJ) << 6 |
           acl_permissions(list, group_class(list)) << 3 | acl_permissions(list, ACL_OTHER);
}

/* Closes an access list, so that only the owner has access; setting a mode opens the list again. */
static void close_list(struct acl_list *list)
{
    set_acl_permissions(list, group_class(list), 0);
    set_acl_permissions(list, ACL_USER_OBJ, 7);
    set_acl_permissions(list, ACL_OTHER, 0);
}

/* --- setting them --- */

int attributes_set(const struct file_system *files, int folder, const struct attributes *a)
{
    struct file_status status;
    int result = files->status(files->context, folder, &status);

    if (result < 0)
        return result;
    bool owner = status.owner != a->owner, group = status.group != a->group,
         mode = status.mode != a->mode;
    /* The group is set before the mode, because a mode with set-group-ID is for the members of that group;
     * the owner is set last, because only the owner may set modes. */
    if (group)
        result = files->set_owner(files->context, folder, (uid_t)-1, a->group);
    if (result == 0 && mode)
        result = files->set_mode(files->context, folder, a->mode);
    if (result == 0 && owner)
        result = files->set_owner(files->context, folder, a->owner, (gid_t)-1);
    return result < 0 ? result : owner || group || mode;
}

int attributes_clean_up(const struct file_system *files, int folder)
{
    int result = files->remove_folder(files->context, folder, TRIAL);

    return result == -ENOENT ? 0 : result;
}

/* Applies to a folder inside the private folder what the commit will apply to the private folder. Only a
 * trial shows reliably whether this process may do that. */
static int try_out(const struct file_system *files, int private, const struct attributes *a)
{
    struct file_status status;
    int result = files->make_folder(files->context, private, TRIAL, ATTRIBUTES_PRIVATE), removed;
    int folder = result < 0 ? result : files->open_folder(files->context, private, TRIAL);

    if (result < 0)
        return result;
    result = folder < 0 ? folder : attributes_set(files, folder, a);
    if (result >= 0)
        result = files->status(files->context, folder, &status);
    if (result == 0 &&
        (status.mode != a->mode || status.owner != a->owner || status.group != a->group))
        result = -EPERM; /* the system has cleared set-group-ID without an error */
    if (result == 0)
        result = files->check_writable(files->context, folder);
    file_system_close(files, &folder);
    removed = attributes_clean_up(files, private);
    return result < 0 ? result : removed;
}

/* --- those of an existing folder --- */

static int copy_lists(const struct file_system *files, int from, int to, bool *inherited)
{
    struct acl_list list;
    int result = read_list(files, from, ACL_DEFAULT, &list);

    *inherited = list.length > 0;
    if (result == 0)
        result = write_list(files, to, ACL_DEFAULT, &list);
    if (result == 0)
        result = read_list(files, from, ACL_ACCESS, &list);
    close_list(&list);
    return result < 0 ? result : write_list(files, to, ACL_ACCESS, &list);
}

int attributes_copy(const struct file_system *files, int from, int to, struct attributes *out)
{
    struct file_status status, made;
    int result = files->status(files->context, from, &status);
    bool inherited = false;

    if (result == 0)
        result = files->status(files->context, to, &made);
    if (result == 0)
        result = copy_lists(files, from, to, &inherited);
    if (result < 0)
        return result;
    *out =
        (struct attributes){.mode = status.mode,
                            .owner = status.owner,
                            .group = status.group,
                            .given_away = status.owner != made.owner || status.group != made.group,
                            .file_mode = inherited ? FILE_BITS : status.mode & FILE_BITS,
                            .by_acl = inherited};
    if (!out->given_away && out->mode == made.mode)
        return 0;
    return try_out(files, to, out);
}

/* --- a new folder --- */

int attributes_of_new(const struct file_system *files, int folder, mode_t mode,
                      struct attributes *out)
{
    struct acl_list inherited;
    struct file_status status;
    int result = files->status(files->context, folder, &status);

    if (result == 0)
        result = read_list(files, folder, ACL_DEFAULT, &inherited);
    if (result < 0)
        return result;
    *out = (struct attributes){.mode = mode | (status.mode & S_ISGID),
                               .owner = status.owner,
                               .group = status.group,
                               .file_mode = mode & FILE_BITS,
                               .by_acl = inherited.length > 0};
    if (out->by_acl)
        out->mode &= inherited_mode(&inherited) | 07000u;
    if (out->mode != status.mode)
        result = try_out(files, folder, out);
    if (result == -EPERM) { /* the file system has no modes */
        out->mode = status.mode;
        result = 0;
    }
    return result;
}

/* --- files --- */

int attributes_set_file(const struct file_system *files, int file, const struct attributes *a)
{
    int result = 0;

    if (!a->by_acl && (a->file_mode & 0077u) != 0) /* a umask may have cleared these bits */
        result = files->set_mode(files->context, file, a->file_mode);
    if (result == -EPERM)
        result = 0; /* the file system has no modes */
    if (result == 0 && a->given_away)
        result = files->set_owner(files->context, file, a->owner, a->group);
    return result;
}
