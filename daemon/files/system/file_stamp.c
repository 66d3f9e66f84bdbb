#include "daemon/files/system/file_stamp.h"

#include "daemon/engine/digest.h"

uint64_t file_stamp(uint64_t about, uint64_t number, uint64_t size, struct timespec changed)
{
    const uint64_t facts[] = {about, number, size, (uint64_t)changed.tv_sec,
                              (uint64_t)changed.tv_nsec};
    uint64_t stamp = digest_bytes(facts, sizeof facts, 0);

    return stamp != FILE_STAMP_NONE ? stamp : 1;
}
