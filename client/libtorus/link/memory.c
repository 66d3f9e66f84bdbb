#include "client/libtorus/link/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/libtorus/common/fail.h"
#include "client/libtorus/link/messages.h"

#define PIECE (64ull << 20) /* allocated at a time, because a signal undoes a whole fallocate() */

/* Sends a message about memory, and waits for an answer of the expected kind, as long as the daemon is there: on a busy
 * machine it may be slow. */
static int ask(struct program_link *link, enum program_kind kind, uint32_t number, uint64_t size,
               enum program_kind expected, struct program_message *m, int *fd,
               struct torus_error *e)
{
    if (link->error.code != 0)
        return link_return_error(link, e);
    if (link_send(link, kind, number, size) != 0)
        return link_check(link, e) != 0 ? -1 : link_lost(link, e);
    if (link_await(link, 0, NULL, e) != 0 ||
        link_receive(link, m, fd, fd != NULL ? 1 : 0, 0, e) != 0)
        return -1;
    if (m->kind == PROGRAM_MEMORY_REFUSED)
        return link_fail_as(e, m->code, m->text);
    if (m->kind == (uint32_t)expected)
        return 0;
    (void)fail(&link->error, TORUS_ERROR_PROTOCOL, "unexpected answer from the daemon at %s",
               link->path);
    return link_return_error(link, e);
}

static int allocate(int fd, size_t bytes, struct torus_error *e)
{
    for (size_t at = 0; at < bytes;) {
        size_t piece = bytes - at < PIECE ? bytes - at : PIECE;
        if (fallocate(fd, 0, (off_t)at, (off_t)piece) == 0)
            at += piece;
        else if (errno != EINTR)
            return fail(e, TORUS_ERROR_MEMORY, "cannot allocate %zu bytes of shared memory: %s",
                        bytes, strerror(errno));
    }
    return 0;
}

/* Allocates whole pages. */
static int new_memory(struct program_link *link, size_t size, struct shared_memory *memory,
                      struct torus_error *e)
{
    void *data = MAP_FAILED;
    struct program_message m;
    int fd = -1, result;

    if (ask(link, PROGRAM_MEMORY, 0, size, PROGRAM_FILE, &m, &fd, e) != 0)
        return -1;
    result = allocate(fd, size, e);
    if (result == 0) {
        data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
        if (data == MAP_FAILED)
            result = fail(e, TORUS_ERROR_MEMORY, "cannot map %zu bytes of shared memory: %s", size,
                          strerror(errno));
    }
    (void)close(fd);
    *memory = (struct shared_memory){m.number, data, size};
    if (result != 0)
        (void)link_send(link, PROGRAM_MEMORY_FREE, m.number, 0);
    else if (ask(link, PROGRAM_MEMORY_READY, m.number, 0, PROGRAM_MEMORY_TAKEN, &m, NULL, e) == 0)
        return 0;
    if (data != MAP_FAILED)
        (void)munmap(data, size);
    *memory = (struct shared_memory){0};
    return -1;
}

int link_memory_new(struct program_link *link, size_t bytes, struct shared_memory *memory,
                    struct torus_error *e)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = (bytes + page - 1) / page * page;
    struct torus_error refused = {0};
    int result;

    *memory = (struct shared_memory){0};
    if (size < bytes || size > SIZE_MAX / 2)
        return fail(e, TORUS_ERROR_MEMORY,
                    "%zu bytes of shared memory are too many: at most %zu are possible", bytes,
                    SIZE_MAX / 2);
    do /* again if this process was so slow that the daemon has released the memory */
        result = new_memory(link, size, memory, &refused);
    while (result != 0 && refused.code == TORUS_ERROR_TIMEOUT && link->error.code == 0);
    if (result != 0 && e != NULL)
        *e = refused;
    return result;
}

void link_memory_free(struct program_link *link, struct shared_memory *memory)
{
    if (memory->number == 0)
        return;
    if (link->fd >= 0 && link->error.code == 0)
        (void)link_send(link, PROGRAM_MEMORY_FREE, memory->number, 0);
    (void)munmap(memory->data, memory->size);
    *memory = (struct shared_memory){0};
}
