#include "daemon/torusd/program/shared/memories.h"

#include <sys/stat.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "proto/elapsed.h"

#define BLOCK 512u /* bytes of a block in st_blocks */

void program_uncount_memory(struct program *p, uint64_t size)
{
    shares_give(p->programs->set.shares, SHARE_PROGRAM_MEMORY, p->user, size);
    p->memory_size -= size;
}

int program_count_memory(struct program *p, uint64_t size, struct error *e)
{
    if (size == 0)
        return error_set(e, ERROR_USAGE, "shared memory must have at least one byte");
    if (shares_take(p->programs->set.shares, SHARE_PROGRAM_MEMORY, p->user, size, e) != 0) {
        e->code = ERROR_MEMORY; /* an error that the program does not retry */
        return -1;
    }
    p->memory_size += size;
    return 0;
}

void program_drop_memory(struct program *p)
{
    (void)close(p->file);
    p->file = -1;
    program_uncount_memory(p, p->file_size);
}

bool program_tidy_memory(struct program *p, uint64_t now)
{
    struct stat st;

    if (p->file < 0)
        return false;
    if (fstat(p->file, &st) == 0 && (uint64_t)st.st_blocks > p->file_used) {
        p->file_used = (uint64_t)st.st_blocks;
        p->file_used_at = now;
    }
    if (elapsed(p->file_used_at, now) < MEMORY_UNUSED_MS)
        return true;
    log_warning("user %u has requested %llu bytes of shared memory, but allocated only %llu of "
                "them in time: releasing them",
                p->user, (unsigned long long)p->file_size,
                (unsigned long long)p->file_used * BLOCK);
    p->file_late = p->file_number;
    program_drop_memory(p);
    return false;
}
