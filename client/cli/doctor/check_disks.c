/* Data roots and state folders: whether they can be used, and how full they are. */
#include <string.h>

#include "client/cli/doctor/doctor.h"

#define DISKS_MOST 64u
#define MIB (UINT64_C(1024) * 1024)
#define FULL_BYTES (64 * MIB)
#define TIGHT_BYTES (UINT64_C(10) * 1024 * MIB) /* more free bytes are always enough */

struct disk {
    char kind[FACT_SIZE], path[FACT_SIZE];
    bool is_state;
};

static void check_space(struct doctor *d, uint32_t node, unsigned number, const struct disk *disk)
{
    const char *facts = d->node[node].facts;
    uint64_t total, left;
    char error[FACT_SIZE];
    struct finding *f;

    if (fact_text(facts, fact_name("disk.%u.error", number), error))
        return; /* that has been said */
    if (!fact_number(facts, fact_name("disk.%u.total_bytes", number), &total) ||
        !fact_number(facts, fact_name("disk.%u.free_bytes", number), &left)) {
        doctor_unseen(d, "disks", node, fact_name("disk.%u.total_bytes", number));
        return;
    }
    if (total == 0)
        return;
    const bool full = left < FULL_BYTES && left < total / 2;
    const bool tight = left < TIGHT_BYTES && left < total / 20;
    if (!full && !tight)
        return;
    f = doctor_find(d, full ? SEVERITY_ERROR : SEVERITY_WARNING, "disks", node,
                    "%s %.150s has %llu MiB left of %llu MiB", disk->kind, disk->path,
                    (unsigned long long)(left / MIB), (unsigned long long)(total / MIB));
    f->why = disk->is_state ? "without room for its records, torusd refuses exchanges of files"
                            : "exchanges of files fail when their target is full";
    finding_mend(f, "du -xsh %.150s/* shows what takes the room", disk->path);
}

static void check_inodes(struct doctor *d, uint32_t node, unsigned number, const struct disk *disk)
{
    const char *facts = d->node[node].facts;
    uint64_t total, left;

    if (!fact_number(facts, fact_name("disk.%u.inodes", number), &total) || total == 0 ||
        !fact_number(facts, fact_name("disk.%u.free_inodes", number), &left) ||
        left >= total / 50 || left > 100000)
        return;
    struct finding *f =
        doctor_find(d, left < 100 ? SEVERITY_ERROR : SEVERITY_WARNING, "disks", node,
                    "%s %.150s has room for %llu more files, of %llu", disk->kind, disk->path,
                    (unsigned long long)left, (unsigned long long)total);
    f->why = "no file can be made without a free inode, however much room there is";
    finding_mend(f, "du --inodes -xs %.150s/* shows where the files are", disk->path);
}

static void check_use(struct doctor *d, uint32_t node, unsigned number, const struct disk *disk)
{
    const char *facts = d->node[node].facts;
    char error[FACT_SIZE];
    struct finding *f;

    if (fact_text(facts, fact_name("disk.%u.error", number), error)) {
        f = doctor_find(d, SEVERITY_ERROR, "disks", node, "%s %.150s: %.150s", disk->kind,
                        disk->path, error);
        f->why = "torusd cannot use the folder";
        finding_mend(f, "install -d -o torusd -g torusd %.150s", disk->path);
    } else if (fact_is(facts, fact_name("disk.%u.read_only", number), "yes")) {
        f = doctor_find(d, disk->is_state ? SEVERITY_ERROR : SEVERITY_WARNING, "disks", node,
                        "%s %.150s is on a file system that is mounted read-only", disk->kind,
                        disk->path);
        f->why = "the kernel mounts a damaged file system again like this: see dmesg";
        finding_mend(f, "mount -o remount,rw \"$(findmnt -no TARGET -T %.150s)\"", disk->path);
    } else if (fact_is(facts, fact_name("disk.%u.writable", number), "no")) {
        f = doctor_find(d, disk->is_state ? SEVERITY_ERROR : SEVERITY_HINT, "disks", node,
                        "torusd may not write to %s %.150s", disk->kind, disk->path);
        f->why = disk->is_state
                     ? "torusd cannot keep its records"
                     : "exchanges can only read there, unless folders below it allow more";
        finding_mend(f, "chown torusd:torusd %.150s", disk->path);
    }
}

/* Data roots below folders that the unit of torusd hides. */
static bool is_in_home(const char *path)
{
    static const char *const hidden[] = {"/home", "/root", "/run/user"};

    for (unsigned i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        const size_t length = strlen(hidden[i]);
        if (strncmp(path, hidden[i], length) == 0 && (path[length] == '/' || path[length] == '\0'))
            return true;
    }
    return false;
}

/* For the user at the machine, the folder is there; for a daemon in the unit, it is not. Returns whether that may be
 * the reason why a root cannot be used. */
static bool check_home(struct doctor *d, uint32_t node, unsigned number, const struct disk *disk)
{
    const char *facts = d->node[node].facts;
    char error[FACT_SIZE];
    struct finding *f;

    if (disk->is_state || !is_in_home(disk->path) ||
        (!fact_text(facts, fact_name("disk.%u.error", number), error) &&
         !fact_is(facts, fact_name("disk.%u.writable", number), "no") &&
         !fact_is(facts, fact_name("disk.%u.read_only", number), "yes")))
        return false;
    f = doctor_find(d, SEVERITY_ERROR, "disks", node,
                    "torusd cannot use %s %.150s, which is below a home folder", disk->kind,
                    disk->path);
    f->why = "the unit of torusd hides /home, /root and /run/user (ProtectHome=yes), and may write "
             "only to the folders in ReadWritePaths";
    finding_mend(f,
                 "systemctl edit torusd, with [Service], ProtectHome=no and ReadWritePaths=%.150s; "
                 "then: systemctl restart torusd. If torusd does not run in its unit: chown "
                 "torusd:torusd %.150s",
                 disk->path, disk->path);
    return true;
}

static void check(struct doctor *d, uint32_t node)
{
    const char *facts = d->node[node].facts;
    struct disk disk;

    if (!doctor_has_facts(d, node))
        doctor_unseen(d, "disks", node, "disk");
    for (unsigned i = 0;
         i < DISKS_MOST && fact_text(facts, fact_name("disk.%u.path", i), disk.path); i++) {
        (void)fact_text(facts, fact_name("disk.%u.kind", i), disk.kind);
        disk.is_state = strcmp(disk.kind, "state_dir") == 0;
        if (!check_home(d, node, i, &disk))
            check_use(d, node, i, &disk);
        check_space(d, node, i, &disk);
        check_inodes(d, node, i, &disk);
    }
}

const struct check check_disks = {
    .node = check,
    .alone = true,
    .subject = {{"disks", "space, inodes and permissions of its folders", true}}};
