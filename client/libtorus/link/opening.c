#include "client/libtorus/link/opening.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/libtorus/common/fail.h"
#include "client/libtorus/common/socket.h"
#include "client/libtorus/link/messages.h"
#include "client/libtorus/link/waiting.h"

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

int link_open(struct program_link *link, const struct link_options *options,
              struct link_opened *opened, struct torus_error *e)
{
    struct program_message m = {
        .magic = PROGRAM_MAGIC,
        .version = PROGRAM_VERSION,
        .kind = options->shrinks != NULL || options->leaves_out ? PROGRAM_SHRINK : PROGRAM_OPEN,
        .flags = (options->unchecked ? PROGRAM_UNCHECKED : 0) |
                 (options->waits ? PROGRAM_WAIT : 0) | (wants_trace() ? PROGRAM_TRACE : 0),
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
