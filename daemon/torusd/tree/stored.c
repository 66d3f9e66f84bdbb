#include "daemon/torusd/tree/stored.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NAME "probe"
#define SECOND UINT64_C(1000000000)
#define EXFAT_MAGIC 0x2011bab0
#define LUSTRE_MAGIC 0x0bd00bd0

static bool same(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* A time that needs all digits. */
static const struct timespec precise = {.tv_sec = 1234567891, .tv_nsec = 987654321};

/* Sets a time, and reads what is stored. */
static bool try_time(const struct stored *s, struct timespec wanted, struct timespec *stored)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, wanted};
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
        if (same(stored, precise))
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
    s->modes = s->file < 0 || (try_mode(s, 0640) && try_mode(s, 0710) && try_mode(s, 0600));
}

void stored_close(struct stored *s)
{
    if (s->file >= 0)
        (void)close(s->file);
    s->file = -1;
}

/* Whether a time is beyond what some file systems can store. */
static bool is_far(struct timespec t)
{
    return t.tv_sec < 315532800 /* 1980 */ || t.tv_sec > INT32_MAX;
}

/* Without trials: rounded down. */
static struct timespec round_down(const struct stored *s, struct timespec t)
{
    const time_t step = (time_t)(s->granularity / SECOND);

    if (step == 0)
        return t;
    return (struct timespec){.tv_sec = t.tv_sec - t.tv_sec % step};
}

bool stored_same_time(struct stored *s, struct timespec found, struct timespec wanted)
{
    if (same(found, wanted))
        return true;
    if (s == NULL || (s->granularity == 1 && !is_far(wanted)))
        return false;
    if (s->asked.tv_sec != wanted.tv_sec || s->asked.tv_nsec != wanted.tv_nsec ||
        s->answered.tv_sec == 0) {
        s->asked = wanted;
        if (!try_time(s, wanted, &s->answered))
            s->answered = round_down(s, wanted);
    }
    return same(found, s->answered);
}

bool stored_can_own(struct stored *s, uid_t owner, gid_t group)
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

ssize_t stored_attribute(struct stored *s, const char *name, const void *wanted, size_t length,
                         void *value, size_t most)
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
