#include "daemon/torusd/tree/metadata.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/disk/file_system.h"
#include "daemon/torusd/tree/manifest_format.h"

/* --- what the file system stores --- */

#define NAME "probe"
#define SECOND UINT64_C(1000000000)
#define EXFAT_MAGIC 0x2011bab0
#define LUSTRE_MAGIC 0x0bd00bd0

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* A time that needs all digits. */
static const struct timespec precise = {.tv_sec = 1234567891, .tv_nsec = 987654321};

/* Sets a time, and reads what is stored. */
static bool try_time(const struct stored *s, struct timespec wanted, struct timespec *stored)
{
    const struct timespec times[2] = {wanted, wanted};
    struct stat st;

    if (s->file < 0 || futimens(s->file, times) != 0 || fstat(s->file, &st) != 0)
        return false;
    *stored = st.st_mtim;
    return true;
}

/* How much of a time is lost, at most. */
static uint64_t find_granularity(const struct stored *s, int folder)
{
    struct timespec stored;
    struct statfs system;

    if (try_time(s, precise, &stored)) {
        if (same_time(stored, precise))
            return 1;
        return stored.tv_sec == precise.tv_sec ? SECOND : 2 * SECOND;
    }
    if (fstatfs(folder, &system) != 0)
        return 1;
    switch ((unsigned long)system.f_type) {
    case MSDOS_SUPER_MAGIC:
    case EXFAT_MAGIC:
        return 2 * SECOND;
    case LUSTRE_MAGIC:
        return SECOND;
    default:
        return 1;
    }
}

/* Whether others, in user space or on another machine, decide how precise times are. */
static bool is_relayed(int folder)
{
    struct statfs system;

    if (fstatfs(folder, &system) != 0)
        return false;
    switch ((unsigned long)system.f_type) {
    case FUSE_SUPER_MAGIC:
    case NFS_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
    case V9FS_MAGIC:
        return true;
    default:
        return false;
    }
}

static bool try_mode(const struct stored *s, mode_t mode)
{
    struct stat st;

    return fchmod(s->file, mode) == 0 && fstat(s->file, &st) == 0 && (st.st_mode & 07777u) == mode;
}

void stored_open(struct stored *s, int folder, int staging)
{
    *s = (struct stored){.file = -1, .granularity = 1, .modes = true};
    if (folder < 0)
        return;
    s->file = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (s->file < 0 && staging >= 0) {
        s->file = openat(staging, NAME, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        (void)unlinkat(staging, NAME, 0);
    }
    s->granularity = find_granularity(s, folder);
    s->vague = s->file < 0 && is_relayed(folder);
    s->modes = s->file < 0 || (try_mode(s, 0640) && try_mode(s, 0710) && try_mode(s, 0600));
}

void stored_close(struct stored *s)
{
    file_close(&s->file);
}

/* Whether a time is beyond what some file systems can store. */
static bool is_far(struct timespec t)
{
    return t.tv_sec < 315532800 /* 1980 */ || t.tv_sec > INT32_MAX;
}

/* No file system in use stores less than every second second. */
static bool is_near(struct timespec a, struct timespec b)
{
    return a.tv_sec - b.tv_sec < 2 && b.tv_sec - a.tv_sec < 2;
}

/* Without trials: rounded down. */
static struct timespec round_down(const struct stored *s, struct timespec t)
{
    const time_t step = (time_t)(s->granularity / SECOND);

    if (step == 0)
        return t;
    return (struct timespec){.tv_sec = t.tv_sec - t.tv_sec % step};
}

/* Whether `found`, the time of a file, is what this file system stores if the time is set to `wanted`. */
static bool stored_same_time(struct stored *s, struct timespec found, struct timespec wanted)
{
    if (same_time(found, wanted) || (s != NULL && s->vague && is_near(found, wanted)))
        return true;
    if (s == NULL || (s->granularity == 1 && !is_far(wanted)))
        return false;
    if (s->asked.tv_sec != wanted.tv_sec || s->asked.tv_nsec != wanted.tv_nsec ||
        s->answered.tv_sec == 0) {
        s->asked = wanted;
        if (!try_time(s, wanted, &s->answered))
            s->answered = round_down(s, wanted);
    }
    return same_time(found, s->answered);
}

/* Whether a file can be given to this owner and group here. */
static bool stored_can_own(struct stored *s, uid_t owner, gid_t group)
{
    if (s == NULL || s->file < 0)
        return true;
    for (unsigned i = 0; i < s->owners && i < STORED_OWNERS; i++)
        if (s->owner[i].owner == owner && s->owner[i].group == group)
            return s->owner[i].can;
    struct stat st;
    const bool can = fchown(s->file, owner, group) == 0 && fstat(s->file, &st) == 0 &&
                     st.st_uid == owner && st.st_gid == group;
    s->owner[s->owners++ % STORED_OWNERS] = (struct stored_owner){owner, group, can};
    return can;
}

#define STORED_REFUSED (-1)
#define STORED_UNKNOWN (-2)

/* Finds what this file system stores of an extended attribute. Writes at most `most` bytes to `value`, and returns
 * their number; or STORED_REFUSED if the attribute cannot be set here, or STORED_UNKNOWN if no trial was possible. */
static ssize_t stored_attribute(struct stored *s, const char *name, const void *wanted,
                                size_t length, void *value, size_t most)
{
    /* a file has no list for new files, but the same rules for the owners in it */
    if (strcmp(name, "system.posix_acl_default") == 0)
        name = "system.posix_acl_access";
    if (s == NULL || s->file < 0)
        return STORED_UNKNOWN;
    if (fsetxattr(s->file, name, wanted, length, 0) != 0)
        return errno == ENOSPC || errno == EDQUOT ? STORED_UNKNOWN : STORED_REFUSED;
    const ssize_t stored = fgetxattr(s->file, name, value, most);
    (void)fremovexattr(s->file, name);
    return stored >= 0 ? stored : STORED_UNKNOWN;
}

/* --- extended attributes: reading them for a manifest --- */

/* Calls by name go through /proc, because there are none relative to a folder: "/proc/self/fd/N/NAME" is the name in
 * the folder that is open as N, and the calls with "l" do not follow it. */
#define NAME_PATH (NAME_MAX + 40)

/* Where the attributes are: of an open file, or of a name in a folder. */
struct holder {
    int file; /* -1: `path` */
    char path[NAME_PATH];
};

static struct holder holder_of(int file, int folder, const char *name)
{
    struct holder h = {.file = file};

    if (file < 0)
        (void)snprintf(h.path, sizeof h.path, "/proc/self/fd/%d/%s", folder, name);
    return h;
}

static ssize_t list(const struct holder *h, char *names, size_t room)
{
    return h->file >= 0 ? flistxattr(h->file, names, room) : llistxattr(h->path, names, room);
}

static ssize_t get(const struct holder *h, const char *name, void *value, size_t room)
{
    return h->file >= 0 ? fgetxattr(h->file, name, value, room)
                        : lgetxattr(h->path, name, value, room);
}

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Whether copies have this attribute at all. Others belong to the machine (security.selinux), or to the file system: XFS
 * lists the permissions of system.posix_acl_* once more as trusted.SGI_ACL_*. */
static bool is_copied(const char *name)
{
    return has_prefix(name, "user.") ||
           (has_prefix(name, "trusted.") && !has_prefix(name, "trusted.overlay.") &&
            !has_prefix(name, "trusted.SGI_")) ||
           strcmp(name, "security.capability") == 0 ||
           strcmp(name, "system.posix_acl_access") == 0 ||
           strcmp(name, "system.posix_acl_default") == 0;
}

static int grow(void **memory, size_t *room, size_t least)
{
    if (*room >= least)
        return 0;
    void *more = realloc(*memory, least);
    if (more == NULL)
        return -1;
    *memory = more;
    *room = least;
    return 0;
}

/* Reads the list of names. Returns its length, or -1 with errno. */
static ssize_t read_names(struct attribute_reader *r, const struct holder *h)
{
    void *names = r->names;
    ssize_t n = -1;

    for (size_t room = 1024; room <= XATTR_LIST_MAX; room *= 8) {
        if (grow(&names, &r->names_room, room) != 0)
            return -1;
        r->names = names;
        n = list(h, r->names, r->names_room);
        if (n >= 0 || errno != ERANGE)
            break;
    }
    /* A link cannot be asked without /proc: links have no attributes then. */
    if (n < 0 && (errno == EOPNOTSUPP || errno == EPERM || errno == EACCES ||
                  (h->file < 0 && errno == ENOENT)))
        return 0;
    return n;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Finds the names that are copied, in order. Returns how many, or -1 without memory; the caller frees *sorted. */
static ssize_t sort_names(const char *names, size_t length, const char ***sorted)
{
    size_t count = 0;

    *sorted = calloc(length / 2 + 1, sizeof **sorted);
    if (*sorted == NULL)
        return -1;
    for (size_t at = 0; at < length; at += strlen(names + at) + 1)
        if (is_copied(names + at))
            (*sorted)[count++] = names + at;
    qsort(*sorted, count, sizeof **sorted, compare_names);
    return (ssize_t)count;
}

/* Reads one attribute to the end of the bytes. One that cannot be read is passed over. */
static int add(struct attribute_reader *r, const struct holder *h, const char *name, size_t *used)
{
    size_t length = strlen(name) + 1, begin = *used + length + 4;
    void *bytes = r->bytes;

    if (grow(&bytes, &r->room, MANIFEST_ATTRIBUTES_MOST + NAME_MOST + 5 + XATTR_SIZE_MAX) != 0)
        return -1;
    r->bytes = bytes;
    ssize_t n = get(h, name, r->bytes + begin, XATTR_SIZE_MAX);
    if (n < 0)
        return 0;
    if (begin + (size_t)n > MANIFEST_ATTRIBUTES_MOST) {
        errno = E2BIG;
        return -1;
    }
    memcpy(r->bytes + *used, name, length);
    (void)put_u32(r->bytes + *used + length, (uint64_t)n);
    *used = begin + (size_t)n;
    return 0;
}

int attributes_read(struct attribute_reader *r, int file, int folder, const char *name,
                    uint32_t *length)
{
    const struct holder h = holder_of(file, folder, name);
    ssize_t names = read_names(r, &h);
    const char **sorted;
    size_t used = 0;
    int result = 0;

    *length = 0;
    if (names <= 0)
        return names < 0 ? -1 : 0;
    ssize_t count = sort_names(r->names, (size_t)names, &sorted);
    if (count < 0)
        return -1;
    for (ssize_t i = 0; i < count && result == 0; i++)
        result = add(r, &h, sorted[i], &used);
    int error = errno;
    free(sorted);
    errno = error;
    *length = (uint32_t)used;
    return result;
}

void attribute_reader_free(struct attribute_reader *r)
{
    free(r->names);
    free(r->bytes);
    *r = (struct attribute_reader){0};
}

/* --- extended attributes: comparing and setting those of a manifest --- */

#define LIST_MOST 65536u /* of all names; the system's limit */

struct attribute {
    const char *name;
    const uint8_t *value;
    uint32_t length;
};

static ssize_t list_names(const struct holder *h, char *names)
{
    ssize_t length = list(h, names, LIST_MOST);

    if (length < 0)
        return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
    return length;
}

static int set_value(const struct holder *h, const struct attribute *a)
{
    return h->file >= 0 ? fsetxattr(h->file, a->name, a->value, a->length, 0)
                        : lsetxattr(h->path, a->name, a->value, a->length, 0);
}

static int remove_value(const struct holder *h, const char *name)
{
    return h->file >= 0 ? fremovexattr(h->file, name) : lremovexattr(h->path, name);
}

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
    a->length = get_u32(n);
    a->value = n + 4;
    if (a->length > left - length - 5)
        return false;
    *at += length + 5 + a->length;
    return true;
}

static bool can_be_set(const struct metadata_rules *rules, const char *name)
{
    return is_copied(name) &&
           (rules->may_own || has_prefix(name, "user.") || has_prefix(name, "system."));
}

static bool entry_has(const struct entry *entry, const char *name)
{
    struct attribute a;

    for (size_t at = 0; next_attribute(entry, &at, &a);)
        if (strcmp(a.name, name) == 0)
            return true;
    return false;
}

static bool is_equal(const struct holder *h, const struct attribute *a, uint8_t *buffer)
{
    return get(h, a->name, buffer, LIST_MOST) == (ssize_t)a->length &&
           memcmp(buffer, a->value, a->length) == 0;
}

/* Compares an attribute with what the target stores of it. Returns 1 if it differs, 0, and whether it is *refused. `buffer`
 * has room for two values. */
static int differs(const struct metadata_rules *rules, const struct holder *h,
                   const struct attribute *a, uint8_t *buffer, bool *refused)
{
    uint8_t *value = buffer + LIST_MOST;

    if (is_equal(h, a, buffer))
        return 0;
    const ssize_t length =
        stored_attribute(rules->stored, a->name, a->value, a->length, value, LIST_MOST);
    if (length == STORED_REFUSED) {
        *refused = true;
        return 0;
    }
    const struct attribute stored = {a->name, value, (uint32_t)length};
    return length == STORED_UNKNOWN || !is_equal(h, &stored, buffer);
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
    const struct holder h = holder_of(place->file, place->folder, place->name);
    struct attribute a;
    int result = 0;
    char *names = malloc(2 * LIST_MOST + 1);

    *refused = false;
    if (names == NULL)
        return -ENOMEM;
    ssize_t length = list_names(&h, names);
    if (length < 0)
        result = (int)length;
    else
        names[length] = '\0';
    if (length > 0 && find_extra(rules, entry, names, (size_t)length) != NULL)
        result = 1;
    for (size_t at = 0; result == 0 && next_attribute(entry, &at, &a);) {
        if (!can_be_set(rules, a.name))
            *refused = true;
        else
            result = differs(rules, &h, &a, (uint8_t *)names, refused);
    }
    free(names);
    return result;
}

static bool is_refusal(int error)
{
    return error == EPERM || error == EOPNOTSUPP || error == EINVAL || error == EACCES;
}

static int remove_extra(const struct metadata_rules *rules, const struct holder *h,
                        const struct entry *entry, char *names)
{
    ssize_t length = list_names(h, names);

    if (length < 0)
        return (int)length;
    for (ssize_t at = 0; at < length; at += (ssize_t)strlen(names + at) + 1)
        if (can_be_set(rules, names + at) && !entry_has(entry, names + at) &&
            remove_value(h, names + at) != 0 && errno != ENODATA && !is_refusal(errno))
            return -errno;
    return 0;
}

int attributes_of_set(const struct metadata_rules *rules, const struct metadata_place *place,
                      const struct entry *entry, bool *refused)
{
    const struct holder h = holder_of(place->file, place->folder, place->name);
    struct attribute a;
    int result = 0;

    *refused = false;
    if (place->fresh && entry->attributes_length == 0)
        return 0;
    char *names = malloc(LIST_MOST + 1);
    if (names == NULL)
        return -ENOMEM;
    if (!place->fresh)
        result = remove_extra(rules, &h, entry, names);
    for (size_t at = 0; result == 0 && next_attribute(entry, &at, &a);) {
        if (!can_be_set(rules, a.name))
            *refused = true;
        else if ((place->fresh || !is_equal(&h, &a, (uint8_t *)names)) && set_value(&h, &a) != 0) {
            *refused = true;
            if (!is_refusal(errno))
                result = -errno;
        }
    }
    free(names);
    return result;
}

/* --- owner, mode, times --- */

#define MODE_BITS 07777u

void metadata_rules_init(struct metadata_rules *rules)
{
    rules->stored = NULL;
    rules->may_own = file_system_has_capability(CAP_CHOWN);
    atomic_init(&rules->not_owned, 0);
    atomic_init(&rules->not_attributed, 0);
}

/* The mode of an entry for a file with this owner: set-ID bits are for the owner and group that the source has. */
static mode_t mode_for(const struct entry *entry, uid_t owner, gid_t group)
{
    mode_t mode = entry->mode & MODE_BITS;

    if (owner != entry->owner)
        mode &= ~(mode_t)S_ISUID;
    /* on folders it says which group new files get, which harms nobody */
    if (group != entry->group && entry->kind != ENTRY_FOLDER)
        mode &= ~(mode_t)S_ISGID;
    return mode;
}

bool metadata_same_time(const struct metadata_rules *rules, struct timespec found,
                        struct timespec wanted)
{
    return stored_same_time(rules->stored, found, wanted);
}

/* Whether the owner or group of a file could be more like those of an entry. */
static bool can_own_better(const struct metadata_rules *rules, const struct stat *st,
                           const struct entry *entry)
{
    return rules->may_own && (stored_can_own(rules->stored, entry->owner, entry->group) ||
                              (st->st_gid != entry->group &&
                               stored_can_own(rules->stored, st->st_uid, entry->group)));
}

int metadata_differ(struct metadata_rules *rules, const struct metadata_place *place,
                    const struct stat *st, const struct entry *entry)
{
    bool owned = st->st_uid == entry->owner && st->st_gid == entry->group, refused;

    if (!owned && can_own_better(rules, st, entry))
        return 1;
    if (entry->kind != ENTRY_SYMLINK && (rules->stored == NULL || rules->stored->modes) &&
        (st->st_mode & MODE_BITS) != mode_for(entry, st->st_uid, st->st_gid))
        return 1;
    if (entry->kind != ENTRY_FILE && !metadata_same_time(rules, st->st_mtim, entry->modified))
        return 1;
    int result = attributes_of_differ(rules, place, entry, &refused);
    if (result == 0 && !owned)
        atomic_fetch_add(&rules->not_owned, 1);
    if (result == 0 && refused)
        atomic_fetch_add(&rules->not_attributed, 1);
    return result;
}

static int change_owner(const struct metadata_place *place, uid_t owner, gid_t group)
{
    return place->file >= 0
               ? fchown(place->file, owner, group)
               : fchownat(place->folder, place->name, owner, group, AT_SYMLINK_NOFOLLOW);
}

/* Sets the owner as far as this is permitted, and *owner and *group to what they are then. Returns 0 or -errno. */
static int set_owner(struct metadata_rules *rules, const struct metadata_place *place,
                     const struct entry *entry, uid_t *owner, gid_t *group)
{
    if (*owner == entry->owner && *group == entry->group)
        return 0;
    if (rules->may_own) {
        if (change_owner(place, entry->owner, entry->group) == 0) {
            *owner = entry->owner;
            *group = entry->group;
            return 0;
        }
        /* EINVAL: a number that the user namespace does not have */
        if (errno != EPERM && errno != EINVAL && errno != EOPNOTSUPP)
            return -errno;
    }
    if (*group != entry->group && change_owner(place, (uid_t)-1, entry->group) == 0)
        *group = entry->group;
    return 0;
}

static int set_mode(const struct metadata_place *place, mode_t mode)
{
    int result = place->file >= 0 ? fchmod(place->file, mode)
                                  : fchmodat(place->folder, place->name, mode, AT_SYMLINK_NOFOLLOW);

    return result == 0 ? 0 : -errno;
}

/* Sets both times: some file systems in user space ignore a call that leaves one out. */
static int set_time(const struct metadata_place *place, const struct stat *st,
                    struct timespec modified)
{
    const struct timespec times[2] = {st->st_atim, modified};

    if ((place->file >= 0 ? futimens(place->file, times)
                          : utimensat(place->folder, place->name, times, AT_SYMLINK_NOFOLLOW)) != 0)
        return -errno;
    return 0;
}

bool metadata_is_fixed(const struct metadata_place *place)
{
    const bool by_name = place->file < 0;
    struct statx st;

    return statx(by_name ? place->folder : place->file, by_name ? place->name : "",
                 by_name ? AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT : AT_EMPTY_PATH, STATX_TYPE,
                 &st) == 0 &&
           (st.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0;
}

/* Only the owner of a file may set some of its metadata, and some file systems have no modes: copies go on then. Returns
 * 0, and whether it was *denied, or the error. */
static int forgive(const struct metadata_place *place, int result, bool *denied)
{
    if (result != -EPERM || metadata_is_fixed(place))
        return result;
    *denied = true;
    return 0;
}

/* Only root may set attributes of a file that may not be written, so the owner may write it meanwhile. The caller sets
 * the mode afterwards, unless this fails. */
static int set_attributes(const struct metadata_rules *rules, const struct metadata_place *place,
                          const struct stat *st, const struct entry *entry, bool *refused)
{
    const mode_t mode = st->st_mode & MODE_BITS;
    const bool closed = (mode & S_IWUSR) == 0 && entry->kind != ENTRY_SYMLINK && geteuid() != 0 &&
                        (entry->attributes_length > 0 || !place->fresh);

    if (closed)
        (void)set_mode(place, mode | S_IWUSR);
    int result = attributes_of_set(rules, place, entry, refused);
    if (closed && result != 0)
        (void)set_mode(place, mode);
    return result;
}

int metadata_set(struct metadata_rules *rules, const struct metadata_place *place,
                 const struct stat *st, const struct entry *entry)
{
    uid_t owner = st->st_uid;
    gid_t group = st->st_gid;
    bool refused = false, no_mode = false, no_time = false;
    mode_t mode = st->st_mode & MODE_BITS;
    int result = set_owner(rules, place, entry, &owner, &group);

    if (owner != st->st_uid || group != st->st_gid)
        mode = (mode_t)-1; /* the system has cleared set-ID bits */
    if (result == 0 && !place->no_attributes)
        result = set_attributes(rules, place, st, entry, &refused);
    if (refused)
        atomic_fetch_add(&rules->not_attributed, 1);
    if (entry->attributes_length > 0 || (!place->fresh && !place->no_attributes))
        mode = (mode_t)-1; /* lists of permissions change it */
    if (result == 0 && entry->kind != ENTRY_SYMLINK && mode != mode_for(entry, owner, group))
        result = forgive(place, set_mode(place, mode_for(entry, owner, group)), &no_mode);
    if (result == 0 && (place->fresh || !same_time(st->st_mtim, entry->modified)))
        result = forgive(place, set_time(place, st, entry->modified), &no_time);
    if (owner != entry->owner || group != entry->group || no_time ||
        (no_mode && owner != geteuid()))
        atomic_fetch_add(&rules->not_owned, 1);
    return result;
}

void metadata_clear_defaults(int folder)
{
    (void)fremovexattr(folder, "system.posix_acl_default");
    (void)fremovexattr(folder, "system.posix_acl_access");
}
