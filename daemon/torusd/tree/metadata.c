#include "daemon/torusd/tree/metadata.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "daemon/torusd/tree/attributes_of.h"

#define MODE_BITS 07777u

/* Whether this thread has CAP_CHOWN. */
static bool may_own(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capget, &head, data) != 0)
        return geteuid() == 0;
    return (data[CAP_TO_INDEX(CAP_CHOWN)].effective & CAP_TO_MASK(CAP_CHOWN)) != 0;
}

void metadata_rules_init(struct metadata_rules *rules)
{
    rules->stored = NULL;
    rules->may_own = may_own();
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

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
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

static int set_time(const struct metadata_place *place, struct timespec modified)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, modified};

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
        result = forgive(place, set_time(place, entry->modified), &no_time);
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
