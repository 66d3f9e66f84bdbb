#include "daemon/torusd/program/shared/page.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/torusd/program/shared/memories.h"
#include "daemon/torusd/program/shared/memory.h"

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
    for (uint32_t number = p->taken - PROGRAM_CALLS; number != p->taken; number++)
        if ((p->under_way >> number % PROGRAM_CALLS & 1) != 0)
            program_call_ended(p, number, e);
    if (p->wants_notices)
        program_notify(p);
}
