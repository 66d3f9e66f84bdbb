/* The connection of a program to its daemon for one group. */
#include "client/libtorus/groups/link.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/libtorus/common.h"
#include "proto/notices.h"
#include "proto/program.h"
#include "proto/text.h"

/* ---- Lines on standard error while the program waits ----------------------------------------- */

struct waiting {
    bool wanted; /* lines are printed at all (proto/notices.h) */
    const char *group;
    int64_t began_ms, printed_ms; /* on clock_ms(); printed_ms 0: no line has been printed */
    bool changed;                 /* the list has changed since the last line */
    uint32_t count; /* known nodes that have not opened the group; 0: only unknown nodes */
    char list[PROGRAM_TEXT_SIZE];
};

#define CHANGE_MS 1000 /* interval between lines while the list of nodes changes */

/* Starts the wait for this group. The name must stay valid as long as *w is used. */
static void waiting_begin(struct waiting *w, const char *group)
{
    *w = (struct waiting){.wanted = notices_wanted(), .group = group, .began_ms = clock_ms()};
}

/* Stores the daemon's report of missing nodes: their number, and a list "3, 7". */
static void waiting_update(struct waiting *w, uint32_t count, const char *list)
{
    w->changed |= count != w->count || strcmp(list, w->list) != 0;
    w->count = count;
    copy_text(w->list, sizeof w->list, list);
}

static int64_t due_ms(const struct waiting *w)
{
    if (w->printed_ms == 0)
        return w->began_ms + NOTICE_FIRST_MS;
    return w->printed_ms + (w->changed ? CHANGE_MS : NOTICE_AGAIN_MS);
}

/* Returns milliseconds until the next line may be due; -1: never. */
static int waiting_pause(const struct waiting *w)
{
    int64_t left = due_ms(w) - clock_ms();

    if (!w->wanted)
        return -1;
    return left > 0 ? (int)left : 0;
}

/* Prints a line if one is due. */
/* dprintf() writes the line with one write(), so that lines of several programs on a terminal do not mix. */
static void waiting_print(struct waiting *w)
{
    int64_t now = clock_ms();
    char name[80],
        whom[sizeof w->list + 32] = "other nodes ('torusctl status' at node 0 shows which)";

    if (!w->wanted || now < due_ms(w))
        return;
    if (w->count > 0)
        (void)snprintf(whom, sizeof whom, "%s %s to open it",
                       text_plural(w->count, "node", "nodes"), w->list);
    (void)dprintf(STDERR_FILENO, "libtorus: group \"%s\": waiting for %s, %" PRId64 " s so far\n",
                  text_printable(name, sizeof name, w->group), whom, (now - w->began_ms) / 1000);
    w->printed_ms = now;
    w->changed = false;
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Sets *e to an error of the daemon: a code of enum error_code, and a text. Returns -1. */
static int link_fail_as(struct torus_error *e, uint32_t code, const char *text)
{
    char end[PROGRAM_TEXT_SIZE];

    copy_text(end, sizeof end, text);
    if (code > TORUS_ERROR_NONE && code <= TORUS_ERROR_BUSY)
        return fail(e, (enum torus_error_code)code, "%s", end);
    return fail(e, TORUS_ERROR_PROTOCOL, "%s (error %u, unknown to this version)", end, code);
}

/* Copies link->error, the reason why the link cannot be used any more, to *e, unless `e` is NULL. Returns -1. */
static int link_return_error(struct program_link *link, struct torus_error *e)
{
    if (e != NULL)
        *e = link->error;
    return -1;
}

/* Sets link->error: the daemon has closed the connection. Then as link_return_error(). */
static int link_lost(struct program_link *link, struct torus_error *e)
{
    (void)fail(&link->error, TORUS_ERROR_LOST, "the daemon at %s has gone away", link->path);
    return link_return_error(link, e);
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* How often this process is the child of one that has opened links. Counted, because getpid() is a system call. */
static unsigned forks;

static bool forks_are_counted;

static void count_fork(void)
{
    forks++;
}

static void watch_forks(void)
{
    forks_are_counted = pthread_atfork(NULL, NULL, count_fork) == 0;
}

/* Returns whether this process has opened the link. A forked child must not use it: it would send messages in the
 * name of its parent. */
static bool link_is_ours(const struct program_link *link)
{
    return link->forks == forks;
}

/* Sets link->error if this process is a forked child. */
static void link_refuse_children(struct program_link *link)
{
    if (link->error.code == 0 && !link_is_ours(link))
        (void)fail(
            &link->error, TORUS_ERROR_USAGE,
            "the group was opened by the parent of this process: a forked child cannot use it");
}

/* Sends a message without a text. Returns 0, or -1 if it could not be sent. */
static int link_send(struct program_link *link, enum program_kind kind, uint32_t number,
                     uint64_t size)
{
    struct program_message m = {.magic = PROGRAM_MAGIC,
                                .version = PROGRAM_VERSION,
                                .kind = (uint32_t)kind,
                                .number = number,
                                .size = size};
    ssize_t n = -1;

    if (!link_is_ours(link))
        return -1;
    do
        n = send(link->fd, &m, sizeof m, MSG_NOSIGNAL);
    while (n < 0 &&
           (errno == EINTR || errno == EAGAIN)); /* a slow daemon has not read the last ones */
    return n == (ssize_t)sizeof m ? 0 : -1;
}

/* Stores at most `most` descriptors of a message in `fds`, and closes the others. Returns how many it has stored. */
static unsigned collect_descriptors(struct msghdr *m, int *fds, unsigned most)
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

/* Waits for the next message, which must have `count` descriptors, except kinds that have none. `flags` are those of
 * recvmsg(). Returns 0 with *m and the descriptors in `fds`, which the caller closes, or -1 with *e. After -1, also
 * because of a PROGRAM_ERROR, the link cannot be used any more. */
static int link_receive(struct program_link *link, struct program_message *m, int *fds,
                        unsigned count, int flags, struct torus_error *e)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(PROGRAM_FDS * sizeof(int))];
    } control;
    struct iovec bytes = {m, sizeof *m};
    struct msghdr header;
    int tries = 2; /* the first ECONNRESET may only mean that the daemon left messages unread */
    ssize_t n;

    do {
        header = (struct msghdr){.msg_iov = &bytes,
                                 .msg_iovlen = 1,
                                 .msg_control = control.room,
                                 .msg_controllen = sizeof control.room};
        n = recvmsg(link->fd, &header, MSG_CMSG_CLOEXEC | flags);
    } while (n < 0 && (errno == EINTR || (errno == ECONNRESET && --tries > 0)));
    if (n <= 0)
        return link_lost(link, e);
    unsigned received = collect_descriptors(&header, fds, count);
    if (n != (ssize_t)sizeof *m || m->magic != PROGRAM_MAGIC) {
        close_all(fds, received);
        (void)fail(&link->error, TORUS_ERROR_PROTOCOL,
                   "the answer at %s is not from a torusd of this version", link->path);
        return link_return_error(link, e);
    }
    m->text[sizeof m->text - 1] = '\0';
    if (m->kind == PROGRAM_ERROR) {
        close_all(fds, received);
        (void)link_fail_as(&link->error, m->code, m->text);
        return link_return_error(link, e);
    }
    if (received == count || m->kind == PROGRAM_MEMORY_REFUSED ||
        (received == 0 && (m->kind == PROGRAM_MISSING || m->kind == PROGRAM_WAITING)))
        return 0;
    close_all(fds, received);
    (void)fail(&link->error, TORUS_ERROR_IO,
               "no file descriptors were received from the daemon at %s: this process may have too "
               "many open files (ulimit -n)",
               link->path);
    return link_return_error(link, e);
}

/* Returns the shorter of two waiting times; -1 means without limit. */
static int sooner(int a, int b)
{
    return a < 0 ? b : b < 0 || a < b ? a : b;
}

/* Waits at most `ms` milliseconds for a message; 0: without limit. Unless `w` is NULL, prints meanwhile which nodes
 * the program waits for. Returns 0, or -1 with *e. */
static int link_await(struct program_link *link, uint64_t ms, struct waiting *w,
                      struct torus_error *e)
{
    struct pollfd p = {link->fd, POLLIN, 0};
    int64_t now = clock_ms(), end = now + (int64_t)ms;

    for (;;) {
        int64_t left = end - now;
        int pause = ms == 0 ? -1 : left > 3600000 ? 3600000 : left > 0 ? (int)left : 0;
        int n = poll(&p, 1, w != NULL ? sooner(pause, waiting_pause(w)) : pause);
        if (n > 0)
            return 0;
        if (w != NULL)
            waiting_print(w);
        now = clock_ms();
        if (ms != 0 && end <= now)
            break;
    }
    (void)fail(&link->error, TORUS_ERROR_TIMEOUT, "the daemon at %s does not answer", link->path);
    return link_return_error(link, e);
}

int link_check(struct program_link *link, struct torus_error *e)
{
    struct program_message m;
    ssize_t n;

    link_refuse_children(link);
    if (link->error.code != 0)
        return link_return_error(link, e);
    n = recv(link->fd, &m, sizeof m, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (link_receive(link, &m, NULL, 0, MSG_DONTWAIT, e) != 0)
        return -1;
    (void)fail(&link->error, TORUS_ERROR_PROTOCOL, "the daemon at %s has sent an unsolicited reply",
               link->path);
    return link_return_error(link, e);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

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

/* ---- Calls ----------------------------------------------------------------------------------- */

#define SLICE_NS 100000000 /* interval between checks of the connection while waiting */

void link_skip_slot(struct program_link *link)
{
    link->submitted++;
}

struct program_slot *link_next_slot(struct program_link *link)
{
    return &link->page->slot[link->submitted % PROGRAM_CALLS];
}

void link_submit(struct program_link *link)
{
    const uint64_t one = 1;

    link_next_slot(link)->request.number = link->submitted;
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

uint32_t link_sender(const struct program_link *link, uint32_t number)
{
    return link->page->slot[number % PROGRAM_CALLS].from;
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

uint32_t link_changes(const struct program_link *link)
{
    return atomic_load(&link->page->changes);
}

/* Returns the time on CLOCK_MONOTONIC, which futexes use, in that many nanoseconds. */
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

/* ---- Opening and closing --------------------------------------------------------------------- */

#define LINK_ANSWER_MS 10000 /* how much longer than its timeout the opening of a group may take */

static int map_page(struct program_link *link, int fd, struct torus_error *e)
{
    void *page = mmap(NULL, sizeof *link->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    (void)close(fd);
    if (page == MAP_FAILED)
        return fail(e, TORUS_ERROR_MEMORY, "cannot map the calls of a group: %s", strerror(errno));
    link->page = page;
    return 0;
}

/* Adds the nodes in the text of a PROGRAM_MISSING message. */
static int add_missing(struct link_opened *o, const char *text, struct torus_error *e)
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

/* Handles messages until the group is open. Returns 0 with *o and the descriptors in `fds`, which the caller closes,
 * or -1 with *e. */
static int await_opened(struct program_link *link, uint64_t ms, struct waiting *w,
                        struct link_opened *o, int *fds, struct torus_error *e)
{
    struct program_message m;

    do {
        if (link_await(link, ms, w, e) != 0 || link_receive(link, &m, fds, PROGRAM_FDS, 0, e) != 0)
            return -1;
        if (m.kind == PROGRAM_MISSING && add_missing(o, m.text, e) != 0)
            return -1;
        if (m.kind == PROGRAM_WAITING)
            waiting_update(w, m.number, m.text);
    } while (m.kind == PROGRAM_MISSING || m.kind == PROGRAM_WAITING);
    o->rank = m.number;
    copy_text(o->dims, sizeof o->dims, m.text);
    return 0;
}

/* Whether the environment asks for a trace: TORUS_TRACE is set, neither empty nor 0. */
static bool wants_trace(void)
{
    const char *value = getenv("TORUS_TRACE");

    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

/* Sends the list of the members. Failures show when the answer is received. */
static void send_members(const struct program_link *link, const struct link_options *options)
{
    struct program_message m = {
        .magic = PROGRAM_MAGIC, .version = PROGRAM_VERSION, .kind = PROGRAM_MEMBERS};
    size_t used = 0;

    for (uint32_t i = 0; i < options->member_count; i++) {
        used += (size_t)snprintf(m.text + used, sizeof m.text - used, "%u ", options->members[i]);
        if (used + 12 < sizeof m.text && i + 1 < options->member_count)
            continue;
        (void)send(link->fd, &m, sizeof m, MSG_NOSIGNAL);
        used = 0;
    }
}

int link_open(struct program_link *link, const struct link_options *options,
              struct link_opened *opened, struct torus_error *e)
{
    struct program_message m = {
        .magic = PROGRAM_MAGIC,
        .version = PROGRAM_VERSION,
        .kind = options->shrinks != NULL || options->leaves_out ? PROGRAM_SHRINK : PROGRAM_OPEN,
        .flags = (options->unchecked ? PROGRAM_UNCHECKED : 0) |
                 (options->waits ? PROGRAM_WAIT : 0) | (wants_trace() ? PROGRAM_TRACE : 0),
        .number = options->memory_timeout_ms,
        .size = options->timeout_ms * UINT64_C(1000000)};
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    struct waiting waiting;
    int fds[PROGRAM_FDS];

    *opened = (struct link_opened){0};
    (void)pthread_once(&watched, watch_forks);
    waiting_begin(&waiting, options->name);
    if (waiting.wanted)
        m.flags |= PROGRAM_TELL;
    *link = (struct program_link){.fd = -1, .doorbell = -1, .notices = -1, .forks = forks};
    link->path = options->shrinks != NULL ? strdup(options->shrinks)
                                          : socket_path(options->socket, PROGRAM_SOCKET_SUFFIX);
    if (link->path == NULL || !forks_are_counted)
        return fail_memory(e);
    link->fd = socket_connect(link->path, SOCK_SEQPACKET, e);
    if (link->fd < 0)
        return -1;
    (void)snprintf(m.text, sizeof m.text, "%s", options->name);
    send_members(link, options);
    /* Sending may fail: a daemon that rejects the connection has closed it already. Its PROGRAM_ERROR is received
     * below. */
    (void)send(link->fd, &m, sizeof m, MSG_NOSIGNAL);
    link->asked = true;
    if (await_opened(link,
                     options->timeout_ms > 0 ? options->timeout_ms + (uint64_t)LINK_ANSWER_MS : 0,
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
    if (link->asked) /* also if opening has failed here: else the program would seem to have died */
        (void)link_send(link, PROGRAM_LEAVE, 0, 0);
    if (link->page != NULL)
        (void)munmap(link->page, sizeof *link->page);
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
    (void)link_send(link, PROGRAM_LEAVE, 0, 0);
    (void)fail(&link->error, TORUS_ERROR_CANCELLED, "%s", why);
}
