#include "client/libtorus/link/calls.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/libtorus/common/fail.h"
#include "client/libtorus/link/messages.h"

#define SLICE_NS 100000000 /* interval between checks of the connection while waiting */

struct program_slot *link_next_slot(struct program_link *link)
{
    return &link->page->slot[link->submitted % PROGRAM_CALLS];
}

void link_submit(struct program_link *link)
{
    const uint64_t one = 1;

    atomic_store(&link->page->submitted, ++link->submitted);
    if (atomic_exchange(&link->page->rung, 1) == 0) {
        /* The write fails only if the counter is full, and then the doorbell is readable anyway. */
        ssize_t n = write(link->doorbell, &one, sizeof one);
        (void)n;
    }
}

static void outcome(const struct program_outcome *from, struct torus_error *e)
{
    struct program_outcome o = *from;

    o.text[sizeof o.text - 1] = '\0';
    *e = (struct torus_error){0};
    if (o.code != 0)
        (void)link_fail_as(e, o.code, o.text);
}

bool link_has_ended(const struct program_link *link, uint32_t number, struct torus_error *e)
{
    const struct program_slot *slot = &link->page->slot[number % PROGRAM_CALLS];

    if (atomic_load(&slot->ended) != number + 1)
        return false;
    outcome(&slot->outcome, e);
    return true;
}

bool link_is_late(const struct program_link *link, uint32_t number, char *whom, size_t size)
{
    const struct program_slot *slot = &link->page->slot[number % PROGRAM_CALLS];
    struct program_outcome o;

    if (atomic_load(&slot->late) != number + 1)
        return false;
    o = slot->outcome;
    if (atomic_load(&slot->late) != number + 1)
        return false; /* the call has just ended, and the text may be its error */
    o.text[sizeof o.text - 1] = '\0';
    copy_text(whom, size, o.text);
    return true;
}

int link_check_group(struct program_link *link, struct torus_error *e)
{
    link_refuse_children(link);
    if (link->error.code == 0 && atomic_load(&link->page->failed) != 0) {
        outcome(&link->page->failure, &link->error);
        if (link->error.code == 0)
            (void)fail(&link->error, TORUS_ERROR_PROTOCOL,
                       "the group has failed, and the daemon gave no reason");
    }
    return link->error.code == 0 ? 0 : link_return_error(link, e);
}

/* Returns the time on CLOCK_MONOTONIC, which futexes use, in so many nanoseconds. */
static struct timespec time_in(uint64_t nanoseconds)
{
    const long second = 1000000000;
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)(nanoseconds / (uint64_t)second);
    t.tv_nsec += (long)(nanoseconds % (uint64_t)second);
    if (t.tv_nsec >= second) {
        t.tv_nsec -= second;
        t.tv_sec++;
    }
    return t;
}

bool link_pause(const struct program_link *link, uint32_t number, uint64_t nanoseconds)
{
    const struct program_slot *slot = &link->page->slot[number % PROGRAM_CALLS];
    const struct timespec end = time_in(nanoseconds);

    for (;;) {
        uint32_t ended = atomic_load(&link->page->ended);
        atomic_store(&link->page->waiting, 1);
        /* Another thread may have taken the end of this call, and a later call may already use the slot. */
        if ((int32_t)(atomic_load(&slot->ended) - number) > 0)
            return true;
        /* The absolute time limits the wait however often signals interrupt it. */
        if (syscall(SYS_futex, &link->page->ended, FUTEX_WAIT_BITSET, ended, &end, NULL,
                    FUTEX_BITSET_MATCH_ANY) != 0 &&
            errno == ETIMEDOUT)
            return false;
    }
}

void link_wait(struct program_link *link, uint32_t number, struct torus_error *e)
{
    while (!link_has_ended(link, number, e))
        if (!link_pause(link, number, SLICE_NS) && link_check(link, e) != 0) {
            (void)link_has_ended(
                link, number,
                e); /* prefer the outcome of a call that ended before the connection did */
            return;
        }
}

/* ---- Notices --------------------------------------------------------------------------------- */

void link_acknowledge(struct program_link *link, uint32_t calls)
{
    char notice;

    link->acknowledged += calls;
    if (!link->wants_notices || !link_is_ours(link) ||
        atomic_load(&link->page->ended) != link->acknowledged)
        return;
    while (recv(link->notices, &notice, sizeof notice, MSG_DONTWAIT) > 0)
        ;
    atomic_store(&link->page->noticed, 0);
    /* A call may have ended after the comparison above, and its notice been discarded by recv(). */
    if (atomic_load(&link->page->ended) != link->acknowledged)
        (void)link_send(link, PROGRAM_NOTICE, 0, 0);
}

int link_notices(struct program_link *link)
{
    if (!link->wants_notices && link->fd >= 0) {
        link->wants_notices = true;
        (void)link_send(link, PROGRAM_NOTICE, 0, 0);
    }
    return link->notices;
}
