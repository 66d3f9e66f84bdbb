#include "daemon/torusd/disk/file_stamp.h"

#include <sys/stat.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/engine/digest.h"
#include "proto/text.h"

uint64_t file_stamp(uint64_t about, uint64_t number, uint64_t size, struct timespec changed)
{
    const uint64_t facts[] = {about, number, size, (uint64_t)changed.tv_sec,
                              (uint64_t)changed.tv_nsec};
    uint64_t stamp = digest_bytes(facts, sizeof facts, 0);

    return stamp != FILE_STAMP_NONE ? stamp : 1;
}

int file_stamp_changed(const char *path, const char *again, struct error *e)
{
    char shown[240];

    return error_set(e, ERROR_DAMAGED, "somebody has changed %s, a new file that had arrived: %s",
                     text_printable(shown, sizeof shown, path), again);
}

int file_stamp_refuse(const char *path, mode_t kind, const char *again, struct error *e)
{
    char shown[240];

    return error_set(e, ERROR_REFUSED,
                     "%s is %s, where torusd keeps new files of its own: remove it, and %s",
                     text_printable(shown, sizeof shown, path),
                     S_ISLNK(kind)   ? "a symbolic link"
                     : S_ISDIR(kind) ? "a folder"
                     : S_ISREG(kind) ? "a file"
                                     : "no file and no folder",
                     again);
}

void file_stamp_warn_of_none(const char *path)
{
    char shown[240];

    log_warning("%s is from an earlier release of torusd, which did not record what tells whether "
                "somebody has changed it",
                text_printable(shown, sizeof shown, path));
}
