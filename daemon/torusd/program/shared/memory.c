#include "daemon/torusd/program/shared/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "proto/text.h"

#define BLOCK 512u       /* bytes of a block in st_blocks */
#define LARGE (1u << 20) /* bytes from which unmapping takes longer than handing it to a thread */

int memory_file(uint64_t size, struct error *e)
{
    int fd = memfd_create("torus", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd >= 0 && size <= INT64_MAX && ftruncate(fd, (off_t)size) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    (void)error_set(e, ERROR_MEMORY, "the daemon cannot create a memory file of %llu %s: %s",
                    (unsigned long long)size, text_plural(size, "byte", "bytes"),
                    strerror(fd >= 0 && size > INT64_MAX ? EFBIG : errno));
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

struct mapping {
    struct program_memory memory;
    uv_loop_t *loop;
    uv_work_t work;
};

static void unmap_memory(uv_work_t *work)
{
    const struct mapping *m = work->data;
    (void)munmap(m->memory.data, m->memory.size);
}

static void on_unmapped(uv_work_t *work, int status)
{
    (void)status; /* no work is ever cancelled */
    free(work->data);
}

static void free_mapping(struct program_memory *memory)
{
    struct mapping *m = (struct mapping *)memory;

    m->work.data = m;
    if (memory->size >= LARGE && uv_queue_work(m->loop, &m->work, unmap_memory, on_unmapped) == 0)
        return;
    unmap_memory(&m->work);
    free(m);
}

struct program_memory *memory_map(int fd, uv_loop_t *loop, struct error *e)
{
    struct mapping *mapping;
    struct stat st;
    void *data;

    if (fstat(fd, &st) != 0 || st.st_size <= 0) {
        (void)error_set(e, ERROR_MEMORY, "a memory file without a size");
        return NULL;
    }
    if ((uint64_t)st.st_blocks * BLOCK < (uint64_t)st.st_size) {
        (void)error_set(e, ERROR_MEMORY, "%llu %s requested, and only %llu %s allocated",
                        (unsigned long long)st.st_size,
                        text_plural((uint64_t)st.st_size, "byte of shared memory was",
                                    "bytes of shared memory were"),
                        (unsigned long long)st.st_blocks * BLOCK,
                        text_plural((uint64_t)st.st_blocks * BLOCK, "is", "are"));
        return NULL;
    }
    mapping = calloc(1, sizeof *mapping);
    data = mapping != NULL
               ? mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
               : MAP_FAILED;
    if (data == MAP_FAILED) {
        (void)error_set(e, ERROR_MEMORY, "the daemon cannot map %llu %s of shared memory: %s",
                        (unsigned long long)st.st_size,
                        text_plural((uint64_t)st.st_size, "byte", "bytes"), strerror(errno));
        free(mapping);
        return NULL;
    }
    /* Keep the memory out of the daemon's core dumps. */
    (void)madvise(data, (size_t)st.st_size, MADV_DONTDUMP);
    mapping->loop = loop;
    mapping->memory = (struct program_memory){data, (uint64_t)st.st_size, 1, free_mapping};
    return &mapping->memory;
}

uint64_t memory_most(void)
{
    struct sysinfo info;

    if (sysinfo(&info) != 0)
        return UINT64_MAX;
    return ((uint64_t)info.totalram + info.totalswap) * info.mem_unit;
}

void memory_copy_once(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
    /* The compiler must not read `from` again instead of the copy. */
    __asm__ volatile("" : : "r"(to) : "memory");
}
