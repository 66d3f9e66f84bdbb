/* What a program and the daemon share: memory, and the page with calls and their outcomes. */
#include "daemon/torusd/program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "proto/elapsed.h"
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

_Static_assert(PROGRAM_CALLS == 64, "under_way has a bit for each slot");

_Static_assert(PROGRAM_TEXT_SIZE == sizeof((struct error *)NULL)->text, "a text fits");

static int make_page(struct program *p, struct error *e)
{
    p->page_file = memory_file(sizeof(struct program_page), e);
    if (p->page_file < 0)
        return -1;
    if (posix_fallocate(p->page_file, 0, sizeof(struct program_page)) != 0)
        return error_set(e, ERROR_MEMORY, "there is no memory for the calls of a program");
    p->page_memory = memory_map(p->page_file, p->programs->set.loop, e);
    if (p->page_memory == NULL)
        return -1;
    p->page = (struct program_page *)(void *)p->page_memory->data;
    return 0;
}

int program_share(struct program *p, struct error *e)
{
    /* Edge-triggered: the doorbell is never read, because reading could block. */
    struct epoll_event ring = {.events = EPOLLIN | EPOLLET, .data.ptr = p};

    if (make_page(p, e) != 0)
        return -1;
    p->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->doorbell < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p->notices) != 0 ||
        epoll_ctl(p->programs->doorbells_fd, EPOLL_CTL_ADD, p->doorbell, &ring) != 0)
        return error_set(e, ERROR_BUSY,
                         "the daemon cannot create descriptors for a program: %s; try again, or "
                         "raise its limit (LimitNOFILE, ulimit -n)",
                         strerror(errno));
    return 0;
}

static void close_descriptor(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

void program_unshare(struct program *p)
{
    /* Closing the doorbell does not remove it from the epoll set, because the program has the descriptor, too. */
    if (p->doorbell >= 0)
        (void)epoll_ctl(p->programs->doorbells_fd, EPOLL_CTL_DEL, p->doorbell, NULL);
    close_descriptor(&p->doorbell);
    close_descriptor(&p->page_file);
    close_descriptor(&p->notices[0]);
    close_descriptor(&p->notices[1]);
    close_descriptor(&p->file);
    for (uint32_t i = 0; i < PROGRAM_MEMORIES; i++) {
        program_memory_unref(p->memory[i]);
        p->memory[i] = NULL;
    }
    program_uncount_memory(p, p->memory_size);
    program_memory_unref(p->page_memory);
    p->page_memory = NULL;
    p->page = NULL;
}

static void fill_outcome(struct program_outcome *out, const struct error *e)
{
    out->code = e != NULL ? (uint32_t)e->code : 0;
    out->text[0] = '\0';
    if (e != NULL) /* most calls have no error */
        (void)snprintf(out->text, sizeof out->text, "%s", e->text);
}

void program_notify(struct program *p)
{
    /* If there is no room for a byte, the program already has something to read. */
    atomic_store(&p->page->noticed, 1);
    (void)send(p->notices[0], "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void program_call_ended(struct program *p, uint32_t number, const struct error *e)
{
    struct program_slot *slot = &p->page->slot[number % PROGRAM_CALLS];

    p->under_way &= ~(UINT64_C(1) << number % PROGRAM_CALLS);
    atomic_store(&slot->late, 0);
    fill_outcome(&slot->outcome, e);
    atomic_store(&slot->ended, number + 1);
    atomic_store(&p->page->ended, ++p->ended);
    if (atomic_exchange(&p->page->waiting, 0) != 0)
        (void)syscall(SYS_futex, &p->page->ended, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    if (p->wants_notices && atomic_exchange(&p->page->noticed, 1) == 0)
        program_notify(p);
}

void program_call_late(struct program *p, uint32_t number, const char *whom)
{
    struct program_slot *slot = &p->page->slot[number % PROGRAM_CALLS];

    (void)snprintf(slot->outcome.text, sizeof slot->outcome.text, "%s", whom);
    atomic_store(&slot->late, number + 1);
}

void program_fail(struct program *p, const struct error *e)
{
    p->group = NULL;
    p->state = PROGRAM_FAILED;
    p->failure = *e;
    fill_outcome(&p->page->failure, e);
    atomic_store(&p->page->failed, 1);
    for (unsigned slot = 0; slot < PROGRAM_CALLS; slot++)
        if ((p->under_way >> slot & 1) != 0)
            program_call_ended(p, p->number[slot], e);
    if (p->wants_notices)
        program_notify(p);
}
