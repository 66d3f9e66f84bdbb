#include "client/libtorus/link/program_link.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/libtorus/common/fail.h"
#include "client/libtorus/link/waiting.h"
#include "client/libtorus/requests/connection.h"

#define SLICE_NS 100000000  /* between two looks whether the daemon is still there */
#define ANSWER_MS 10000     /* that a daemon may take for what it does at once */
#define PIECE (64ull << 20) /* allocated at a time: a signal undoes one of them */

/* ---- Errors ---------------------------------------------------------------------------------- */

/* What the daemon says. Returns -1. */
static int fail_as(struct torus_error *e, uint32_t code, const char *text)
{
    char end[PROGRAM_TEXT_SIZE];

    copy_text(end, sizeof end, text);
    if (code > TORUS_ERROR_NONE && code <= TORUS_ERROR_BUSY)
        return fail(e, (enum torus_error_code)code, "%s", end);
    return fail(e, TORUS_ERROR_PROTOCOL, "%s (error %u, unknown to this version)", end, code);
}

/* The connection is of no more use, for the reason that the caller gives next. */
static int give_up(struct program_link *link, struct torus_error *e)
{
    if (e != NULL)
        *e = link->error;
    return -1;
}

static int lost(struct program_link *link, struct torus_error *e)
{
    (void)fail(&link->error, TORUS_ERROR_LOST, "the daemon at %s has gone away", link->path);
    return give_up(link, e);
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* A child that has been forked has copies of all of it: what it said would be said in its parent's name. */
static bool is_ours(const struct program_link *link)
{
    return link->process == getpid();
}

static void refuse_children(struct program_link *link)
{
    if (link->error.code == 0 && !is_ours(link))
        (void)fail(
            &link->error, TORUS_ERROR_USAGE,
            "the group was opened by the process that has forked this one, and only that one can "
            "use it");
}

static int send_message(struct program_link *link, enum program_kind kind, uint32_t number,
                        uint64_t size)
{
    struct program_message m = {.magic = PROGRAM_MAGIC,
                                .version = PROGRAM_VERSION,
                                .kind = (uint32_t)kind,
                                .number = number,
                                .size = size};
    ssize_t n = -1;

    if (!is_ours(link))
        return -1;
    do
        n = send(link->fd, &m, sizeof m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof m ? 0 : -1;
}

/* Takes the descriptors that have come along; closes those that nobody expects. */
static unsigned take_descriptors(struct msghdr *m, int *fds, unsigned most)
{
    unsigned count = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (count < most)
                fds[count++] = fd;
            else
                (void)close(fd);
        }
    }
    return count;
}

static void close_all(int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        (void)close(fds[i]);
}

/* The next message, with `count` descriptors; it waits for it. An ERROR ends the connection. */
static int receive(struct program_link *link, struct program_message *m, int *fds, unsigned count,
                   int flags, struct torus_error *e)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(PROGRAM_FDS * sizeof(int))];
    } control;
    struct iovec bytes = {m, sizeof *m};
    struct msghdr header;
    int tries = 2; /* the first may say only that the other side was closed with messages unread */
    ssize_t n;

    do {
        header = (struct msghdr){.msg_iov = &bytes,
                                 .msg_iovlen = 1,
                                 .msg_control = control.room,
                                 .msg_controllen = sizeof control.room};
        n = recvmsg(link->fd, &header, MSG_CMSG_CLOEXEC | flags);
    } while (n < 0 && (errno == EINTR || (errno == ECONNRESET && --tries > 0)));
    if (n <= 0)
        return lost(link, e);
    unsigned come = take_descriptors(&header, fds, count);
    if (n != (ssize_t)sizeof *m || m->magic != PROGRAM_MAGIC) {
        close_all(fds, come);
        (void)fail(&link->error, TORUS_ERROR_PROTOCOL,
                   "the answer at %s is not from a torusd of this version", link->path);
        return give_up(link, e);
    }
    m->text[sizeof m->text - 1] = '\0';
    if (m->kind == PROGRAM_ERROR) {
        close_all(fds, come);
        (void)fail_as(&link->error, m->code, m->text);
        return give_up(link, e);
    }
    if (come == count || m->kind == PROGRAM_MEMORY_REFUSED ||
        (come == 0 && (m->kind == PROGRAM_MISSING || m->kind == PROGRAM_WAITING)))
        return 0;
    close_all(fds, come);
    (void)fail(&link->error, TORUS_ERROR_IO,
               "no descriptor could be received from the daemon at %s: this process may have too "
               "many open (ulimit -n)",
               link->path);
    return give_up(link, e);
}

/* The smaller of two times to wait, of which -1 is for ever. */
static int sooner(int a, int b)
{
    return a < 0 ? b : b < 0 || a < b ? a : b;
}

/* Until there is a message; 0 ms: for ever. Meanwhile it is said what is waited for, unless `w` is NULL. */
static int await(struct program_link *link, uint64_t ms, struct waiting *w, struct torus_error *e)
{
    struct pollfd p = {link->fd, POLLIN, 0};
    struct timespec now;
    int64_t end;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    end = now.tv_sec * 1000 + now.tv_nsec / 1000000 + (int64_t)ms;
    for (;;) {
        int64_t left = end - (now.tv_sec * 1000 + now.tv_nsec / 1000000);
        int pause = ms == 0 ? -1 : left > 3600000 ? 3600000 : left > 0 ? (int)left : 0;
        int n = poll(&p, 1, w != NULL ? sooner(pause, waiting_pause(w)) : pause);
        if (n > 0)
            return 0;
        if (w != NULL)
            waiting_say(w);
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        if (ms != 0 && end <= now.tv_sec * 1000 + now.tv_nsec / 1000000)
            break;
    }
    (void)fail(&link->error, TORUS_ERROR_TIMEOUT, "the daemon at %s does not answer", link->path);
    return give_up(link, e);
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static int map_page(struct program_link *link, int fd, struct torus_error *e)
{
    void *page = mmap(NULL, sizeof *link->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    (void)close(fd);
    if (page == MAP_FAILED)
        return fail(e, TORUS_ERROR_MEMORY, "cannot map the calls of a group: %s", strerror(errno));
    link->page = page;
    return 0;
}

/* Adds what a message says of nodes that have been left out. */
static int take_missing(struct link_opened *o, const char *text, struct torus_error *e)
{
    for (;;) {
        char *end;
        unsigned long node = strtoul(text, &end, 10);
        if (end == text)
            return 0;
        uint32_t *more = reallocarray(o->missing, o->missing_count + 1, sizeof *more);
        if (more == NULL)
            return fail_memory(e);
        o->missing = more;
        o->missing[o->missing_count++] = (uint32_t)node;
        text = end;
    }
}

/* The descriptors are those of the last message. */
static int await_opened(struct program_link *link, uint64_t ms, struct waiting *w,
                        struct link_opened *o, int *fds, struct torus_error *e)
{
    struct program_message m;

    do {
        if (await(link, ms, w, e) != 0 || receive(link, &m, fds, PROGRAM_FDS, 0, e) != 0)
            return -1;
        if (m.kind == PROGRAM_MISSING && take_missing(o, m.text, e) != 0)
            return -1;
        if (m.kind == PROGRAM_WAITING)
            waiting_note(w, m.number, m.text);
    } while (m.kind == PROGRAM_MISSING || m.kind == PROGRAM_WAITING);
    o->rank = m.number;
    copy_text(o->dims, sizeof o->dims, m.text);
    return 0;
}

int link_open(struct program_link *link, const struct link_options *options,
              struct link_opened *opened, struct torus_error *e)
{
    struct program_message m = {
        .magic = PROGRAM_MAGIC,
        .version = PROGRAM_VERSION,
        .kind = options->shrinks != NULL || options->leaves_out ? PROGRAM_SHRINK : PROGRAM_OPEN,
        .flags = (options->unchecked ? PROGRAM_UNCHECKED : 0) | (options->waits ? PROGRAM_WAIT : 0),
        .size = options->timeout_ms * UINT64_C(1000000)};
    struct waiting waiting;
    int fds[PROGRAM_FDS];

    *opened = (struct link_opened){0};
    waiting_begin(&waiting, options->name);
    if (waiting.wanted)
        m.flags |= PROGRAM_TELL;
    *link = (struct program_link){.fd = -1, .doorbell = -1, .notices = -1, .process = getpid()};
    link->path = options->shrinks != NULL ? strdup(options->shrinks)
                                          : socket_path(options->socket, PROGRAM_SOCKET_SUFFIX);
    if (link->path == NULL)
        return fail_memory(e);
    link->fd = socket_connect(link->path, SOCK_SEQPACKET, e);
    if (link->fd < 0)
        return -1;
    (void)snprintf(m.text, sizeof m.text, "%s", options->name);
    /* A daemon that refuses the connection has closed it already, and says why. */
    (void)send(link->fd, &m, sizeof m, MSG_NOSIGNAL);
    if (await_opened(link, options->timeout_ms > 0 ? options->timeout_ms + (uint64_t)ANSWER_MS : 0,
                     &waiting, opened, fds, e) != 0)
        return -1;
    link->doorbell = fds[PROGRAM_FD_DOORBELL];
    link->notices = fds[PROGRAM_FD_NOTICES];
    return map_page(link, fds[PROGRAM_FD_PAGE], e);
}

static void close_descriptor(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

void link_close(struct program_link *link)
{
    if (link->page != NULL) {
        (void)send_message(link, PROGRAM_LEAVE, 0, 0);
        (void)munmap(link->page, sizeof *link->page);
    }
    close_descriptor(link->fd);
    close_descriptor(link->doorbell);
    close_descriptor(link->notices);
    free(link->path);
    *link = (struct program_link){.fd = -1, .doorbell = -1, .notices = -1};
}

void link_abandon(struct program_link *link, const char *why)
{
    if (link->error.code != 0)
        return;
    (void)send_message(link, PROGRAM_LEAVE, 0, 0);
    (void)fail(&link->error, TORUS_ERROR_CANCELLED, "%s", why);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* A message about memory, and the answer to it. */
static int ask(struct program_link *link, enum program_kind kind, uint32_t number, uint64_t size,
               enum program_kind expected, struct program_message *m, int *fd,
               struct torus_error *e)
{
    if (link->error.code != 0)
        return give_up(link, e);
    if (send_message(link, kind, number, size) != 0)
        return link_check(link, e) != 0 ? -1 : lost(link, e);
    if (await(link, ANSWER_MS, NULL, e) != 0 || receive(link, m, fd, fd != NULL ? 1 : 0, 0, e) != 0)
        return -1;
    if (m->kind == PROGRAM_MEMORY_REFUSED)
        return fail_as(e, m->code, m->text);
    if (m->kind == (uint32_t)expected)
        return 0;
    (void)fail(&link->error, TORUS_ERROR_PROTOCOL, "unexpected answer from the daemon at %s",
               link->path);
    return give_up(link, e);
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

int link_memory_new(struct program_link *link, size_t bytes, struct shared_memory *memory,
                    struct torus_error *e)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = (bytes + page - 1) / page * page;
    void *data = MAP_FAILED;
    struct program_message m;
    int fd = -1, result;

    *memory = (struct shared_memory){0};
    if (size < bytes || size > SIZE_MAX / 2)
        return fail(e, TORUS_ERROR_MEMORY,
                    "%zu bytes of shared memory are too many: at most %zu are possible", bytes,
                    SIZE_MAX / 2);
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
        (void)send_message(link, PROGRAM_MEMORY_FREE, m.number, 0);
    else if (ask(link, PROGRAM_MEMORY_READY, m.number, 0, PROGRAM_MEMORY_TAKEN, &m, NULL, e) == 0)
        return 0;
    if (data != MAP_FAILED)
        (void)munmap(data, size);
    *memory = (struct shared_memory){0};
    return -1;
}

void link_memory_free(struct program_link *link, struct shared_memory *memory)
{
    if (memory->number == 0)
        return;
    if (link->fd >= 0 && link->error.code == 0)
        (void)send_message(link, PROGRAM_MEMORY_FREE, memory->number, 0);
    (void)munmap(memory->data, memory->size);
    *memory = (struct shared_memory){0};
}

/* ---- Calls ----------------------------------------------------------------------------------- */

struct program_slot *link_next_slot(struct program_link *link)
{
    return &link->page->slot[link->submitted % PROGRAM_CALLS];
}

void link_submit(struct program_link *link)
{
    const uint64_t one = 1;

    atomic_store(&link->page->submitted, ++link->submitted);
    if (atomic_exchange(&link->page->rung, 1) == 0) {
        /* It can fail only if the counter is full, and then the daemon knows as well. */
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
        (void)fail_as(e, o.code, o.text);
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
        return false; /* it has ended: the text may be that of its end */
    o.text[sizeof o.text - 1] = '\0';
    copy_text(whom, size, o.text);
    return true;
}

int link_is_whole(struct program_link *link, struct torus_error *e)
{
    refuse_children(link);
    if (link->error.code == 0 && atomic_load(&link->page->failed) != 0) {
        outcome(&link->page->failure, &link->error);
        if (link->error.code == 0)
            (void)fail(&link->error, TORUS_ERROR_PROTOCOL, "the group has failed without a reason");
    }
    return link->error.code == 0 ? 0 : give_up(link, e);
}

int link_check(struct program_link *link, struct torus_error *e)
{
    struct program_message m;
    ssize_t n;

    refuse_children(link);
    if (link->error.code != 0)
        return give_up(link, e);
    n = recv(link->fd, &m, sizeof m, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (receive(link, &m, NULL, 0, MSG_DONTWAIT, e) != 0)
        return -1;
    (void)fail(&link->error, TORUS_ERROR_PROTOCOL, "the daemon at %s has sent an unsolicited reply",
               link->path);
    return give_up(link, e);
}

/* The time in so many nanoseconds, on the clock of futexes. */
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
        /* A later call may have the slot by now, if another thread has learned of the end of this one. */
        if ((int32_t)(atomic_load(&slot->ended) - number) > 0)
            return true;
        /* Until a fixed time, however often signals interrupt it. */
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
            (void)link_has_ended(link, number, e); /* just before */
            return;
        }
}

/* ---- Notices --------------------------------------------------------------------------------- */

void link_told(struct program_link *link, uint32_t calls)
{
    char notice;

    link->told += calls;
    if (!link->wants_notices || !is_ours(link) || atomic_load(&link->page->ended) != link->told)
        return;
    while (recv(link->notices, &notice, sizeof notice, MSG_DONTWAIT) > 0)
        ;
    atomic_store(&link->page->noticed, 0);
    /* A call that has ended meanwhile has been noticed before, perhaps. */
    if (atomic_load(&link->page->ended) != link->told)
        (void)send_message(link, PROGRAM_NOTICE, 0, 0);
}

int link_notices(struct program_link *link)
{
    if (!link->wants_notices && link->fd >= 0) {
        link->wants_notices = true;
        (void)send_message(link, PROGRAM_NOTICE, 0, 0);
    }
    return link->notices;
}
