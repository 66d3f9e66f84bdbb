/* Room on the disks that the daemon uses. */
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/lib/host/gather.h"

static void add_folder(struct facts *f, unsigned number, const char *kind, const char *path)
{
    struct statvfs s;
    char name[64];

#define ADD(key, ...)                                                                              \
    do {                                                                                           \
        (void)snprintf(name, sizeof name, "disk.%u.%s", number, key);                              \
        facts_add(f, name, __VA_ARGS__);                                                           \
    } while (0)
    ADD("kind", "%s", kind);
    ADD("path", "%s", path);
    if (statvfs(path, &s) != 0) {
        ADD("error", "%m");
        return;
    }
    ADD("total_bytes", "%llu", (unsigned long long)s.f_blocks * s.f_frsize);
    ADD("free_bytes", "%llu", (unsigned long long)s.f_bavail * s.f_frsize);
    ADD("inodes", "%llu", (unsigned long long)s.f_files);
    ADD("free_inodes", "%llu", (unsigned long long)s.f_favail);
    ADD("read_only", "%s", (s.f_flag & ST_RDONLY) != 0 ? "yes" : "no");
    ADD("writable", "%s", access(path, W_OK | X_OK) == 0 ? "yes" : "no");
#undef ADD
}

void gather_disks(struct facts *f, const struct gather_setup *setup)
{
    for (size_t i = 0; i < setup->folders; i++)
        add_folder(f, (unsigned)i, setup->kind[i], setup->folder[i]);
}
