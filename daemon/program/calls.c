/* The page: calls in, outcomes out. */
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <errno.h>
#include <limits.h>

#include "daemon/program/internal.h"
#include "proto/text.h"

_Static_assert(PROGRAM_CALLS == 64, "under_way has a bit for each slot");
_Static_assert(PROGRAM_TEXT_SIZE == sizeof((struct error *)NULL)->text, "a text fits");

/* ---- Sharing --------------------------------------------------------------------------------- */

static int make_page(struct program *p, struct error *e)
{
    p->page_file = memory_file(sizeof(struct program_page), e);
    if (p->page_file < 0)
        return -1;
    if (posix_fallocate(p->page_file, 0, sizeof(struct program_page)) != 0)
        return error_set(e, ERROR_MEMORY, "there is no memory for the calls of a program");
    p->page_memory = memory_map(p->page_file, p->all->set.loop, e);
    if (p->page_memory == NULL)
        return -1;
    p->page = (struct program_page *)(void *)p->page_memory->data;
    return 0;
}

int program_share(struct program *p, struct error *e)
{
    /* An edge each time it is rung: the doorbell is never read, which could wait for the program. */
    struct epoll_event ring = {.events = EPOLLIN | EPOLLET, .data.ptr = p};

    if (make_page(p, e) != 0)
        return -1;
    p->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->doorbell < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p->notices) != 0 ||
        epoll_ctl(p->all->doorbells_fd, EPOLL_CTL_ADD, p->doorbell, &ring) != 0)
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
    if (p->doorbell >= 0) /* closing it is not enough: the program has it, too */
        (void)epoll_ctl(p->all->doorbells_fd, EPOLL_CTL_DEL, p->doorbell, NULL);
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

/* ---- Outcomes -------------------------------------------------------------------------------- */

static void fill(struct program_outcome *out, const struct error *e)
{
    out->code = e != NULL ? (uint32_t)e->code : 0;
    out->text[0] = '\0';
    if (e != NULL) /* most calls have none */
        (void)snprintf(out->text, sizeof out->text, "%s", e->text);
}

void program_notify(struct program *p)
{
    /* If there is no room for it, there is something to be read. */
    atomic_store(&p->page->noticed, 1);
    (void)send(p->notices[0], "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void program_call_ended(struct program *p, uint32_t number, const struct error *e)
{
    struct program_slot *slot = &p->page->slot[number % PROGRAM_CALLS];

    p->under_way &= ~(UINT64_C(1) << number % PROGRAM_CALLS);
    atomic_store(&slot->late, 0);
    fill(&slot->outcome, e);
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
    fill(&p->page->failure, e);
    atomic_store(&p->page->failed, 1);
    for (uint32_t number = p->taken - PROGRAM_CALLS; number != p->taken; number++)
        if ((p->under_way >> number % PROGRAM_CALLS & 1) != 0)
            program_call_ended(p, number, e);
    if (p->wants_notices)
        program_notify(p);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* How many arrays a call has. */
static unsigned arrays(uint32_t operation)
{
    switch (operation) {
    case GROUP_ALLTOALLV:
        return 4;
    case GROUP_ALLGATHERV:
        return 2;
    case GROUP_REDUCE_SCATTER:
        return 1;
    default:
        return 0;
    }
}

/* The memory of that number if it has so many bytes there; NULL with 0 for no bytes at all. */
static int find(const struct program *p, uint32_t number, uint64_t offset, uint64_t size,
                struct program_area *area, struct error *e)
{
    struct program_memory *memory;

    *area = (struct program_area){NULL, 0, 0};
    if (number == 0 && size == 0)
        return 0;
    memory = number > 0 && number <= PROGRAM_MEMORIES ? p->memory[number - 1] : NULL;
    if (memory == NULL)
        return error_set(e, ERROR_USAGE, "the program has no shared memory %u", number);
    if (offset > memory->size || size > memory->size - offset)
        return error_set(e, ERROR_USAGE,
                         "%llu %s at offset %llu %s not lie in shared memory %u, which has %llu",
                         (unsigned long long)size, text_plural(size, "byte", "bytes"),
                         (unsigned long long)offset, text_plural(size, "does", "do"), number,
                         (unsigned long long)memory->size);
    *area = (struct program_area){memory, offset, size};
    return 0;
}

/* The members of a part, or 0 if there is no such part. */
static uint32_t part_size(const struct program *p, uint32_t part)
{
    const struct torus *torus = groups_torus(p->all->set.groups);
    uint32_t size = 1;

    if (part == 0 || part >> torus->dims != 0)
        return 0;
    if (part == (1u << torus->dims) - 1)
        return group_members(p->group);
    for (unsigned d = 0; d < torus->dims; d++)
        if ((part >> d & 1) != 0)
            size *= torus->size[d];
    return size;
}

/* Copies the arrays, and sets the call's pointers. */
static int take_counts(struct program *p, const struct program_request *r, struct group_call *call,
                       struct error *e)
{
    struct programs *all = p->all;
    unsigned count = arrays(r->operation);
    uint64_t members = part_size(p, r->part);
    struct program_area area;

    if (members == 0)
        return error_set(e, ERROR_USAGE, "the torus has no part with dimensions 0x%x", r->part);
    if (count == 0)
        return 0;
    if (find(p, r->counts_memory, r->counts_offset, count * members * sizeof *all->counts, &area,
             e) != 0)
        return -1;
    if (all->counts_room < count * members) {
        uint64_t *room = reallocarray(all->counts, count * members, sizeof *room);
        if (room == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory");
        all->counts = room;
        all->counts_room = count * members;
    }
    memory_copy_once(all->counts, area.memory->data + area.offset,
                     count * members * sizeof *all->counts);
    if (r->operation == GROUP_ALLTOALLV) {
        call->send_size = all->counts;
        call->send_offset = all->counts + members;
        call->receive_size = all->counts + 2 * members;
        call->receive_offset = all->counts + 3 * members;
    } else {
        call->receive_size = all->counts;
        call->receive_offset = count > 1 ? all->counts + members : NULL;
    }
    return 0;
}

/* Only what this folder knows is checked here; group_call() does the rest. */
static int take_call(struct program *p, const struct program_request *r, uint32_t number,
                     struct error *e)
{
    struct group_call call = {
        .operation = (enum group_operation)r->operation,
        .part = r->part,
        .root = r->root,
        .type = (enum reduction_type)r->type,
        .operator=(enum reduction_operator) r->operator,
        .size = r->size,
        .in_place = r->in_place != 0,
        .timeout_ns = r->timeout_ns,
        .late_ns = r->late_ms * MILLISECONDS,
    };

    if (r->operation == 0 || r->operation >= GROUP_OPERATIONS)
        return error_set(e, ERROR_USAGE, "the daemon does not know operation %u", r->operation);
    if (find(p, r->send_memory, r->send_offset, r->send_size, &call.send, e) != 0 ||
        find(p, r->receive_memory, r->receive_offset, r->receive_size, &call.receive, e) != 0 ||
        take_counts(p, r, &call, e) != 0)
        return -1;
    return group_call(p->group, &call, number, e);
}

static int break_rules(struct program *p, const char *what)
{
    struct error e;

    (void)error_set(&e, ERROR_PROTOCOL, "the program of node %u %s",
                    groups_rank(p->all->set.groups), what);
    program_refuse(p, &e);
    return -1;
}

static int take_next(struct program *p)
{
    struct program_request request;
    uint32_t number = p->taken;
    uint64_t bit = UINT64_C(1) << number % PROGRAM_CALLS;
    struct error e;

    if ((p->under_way & bit) != 0)
        return break_rules(p, "has made a call in the place of one that has not ended");
    memory_copy_once(&request, &p->page->slot[number % PROGRAM_CALLS].request, sizeof request);
    p->taken++;
    p->under_way |= bit;
    if (p->state == PROGRAM_FAILED)
        program_call_ended(p, number, &p->failure);
    else if (take_call(p, &request, number, &e) != 0)
        program_call_ended(p, number, &e);
    return 0;
}

void program_look(struct program *p)
{
    uint32_t submitted;

    if (p->state != PROGRAM_MEMBER && p->state != PROGRAM_FAILED)
        return;
    (void)atomic_exchange(&p->page->rung, 0);
    submitted = atomic_load(&p->page->submitted);
    if (submitted - p->taken > PROGRAM_CALLS) {
        (void)break_rules(p, "has submitted more calls than there is room for");
        return;
    }
    while (p->taken != submitted && take_next(p) == 0)
        ;
}
