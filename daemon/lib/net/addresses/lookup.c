/* Happy path: lookup_start() -> thread: getaddrinfo(), writes to `fd` -> on_answer() -> done().
 *
 * The loop and the thread both own the question, and the last owner frees it: the thread of a cancelled
 * lookup continues until the resolver gives up, and its answer is dropped. */
#include "daemon/lib/net/addresses/lookup.h"

#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/lib/base/detached_thread.h"

struct question {
    atomic_uint owners;
    int fd; /* readable when it has been answered */
    char reason[160];
    unsigned count;
    struct sockaddr_storage found[LOOKUP_MOST];
    char host[];
};

struct lookup {
    uv_poll_t poll;
    struct question *question;
    struct lookup_user user;
};

static void disown_question(struct question *q)
{
    if (atomic_fetch_sub(&q->owners, 1) > 1)
        return;
    (void)close(q->fd);
    free(q);
}

static void *ask_resolver(void *argument)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const uint64_t one = 1;
    struct question *q = argument;
    struct addrinfo *found = NULL;
    int result = getaddrinfo(q->host, NULL, &hints, &found), error = errno;

    for (const struct addrinfo *i = found; i != NULL && q->count < LOOKUP_MOST; i = i->ai_next)
        if (i->ai_family == AF_INET || i->ai_family == AF_INET6)
            memcpy(&q->found[q->count++], i->ai_addr, i->ai_addrlen);
    if (result == 0)
        freeaddrinfo(found);
    if (q->count == 0)
        (void)snprintf(q->reason, sizeof q->reason, "the name cannot be looked up: %s",
                       result == EAI_SYSTEM ? strerror(error)
                       : result != 0        ? gai_strerror(result)
                                            : "it has no address");
    if (write(q->fd, &one, sizeof one) < 0)
        abort(); /* cannot happen: a new eventfd has room for it */
    disown_question(q);
    return NULL;
}

static void on_closed(uv_handle_t *handle)
{
    struct lookup *lookup = handle->data;
    const struct lookup_user user = lookup->user;

    disown_question(lookup->question);
    free(lookup);
    user.closed(user.closed_context);
}

void lookup_cancel(struct lookup *lookup)
{
    uv_close((uv_handle_t *)&lookup->poll, on_closed);
}

static void on_answer(uv_poll_t *poll, int status, int events)
{
    struct lookup *lookup = poll->data;
    const struct question *q = lookup->question;

    (void)status, (void)events;
    lookup_cancel(lookup); /* frees it in the next iteration of the loop */
    lookup->user.done(lookup->user.context, q->found, q->count, q->reason);
}

struct lookup *lookup_start(uv_loop_t *loop, const char *host, const struct lookup_user *user)
{
    const size_t length = strlen(host);
    struct lookup *lookup = calloc(1, sizeof *lookup);
    struct question *q = calloc(1, sizeof *q + length + 1);
    int error = ENOMEM;

    if (lookup == NULL || q == NULL)
        goto fail;
    memcpy(q->host, host, length + 1);
    q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (q->fd < 0) {
        error = errno;
        goto fail;
    }
    error = detached_thread_start(ask_resolver, (atomic_init(&q->owners, 2), q));
    if (error != 0) {
        (void)close(q->fd);
        goto fail;
    }
    lookup->question = q;
    lookup->user = *user;
    lookup->poll.data = lookup;
    if (uv_poll_init(loop, &lookup->poll, q->fd) != 0) {
        disown_question(q);
        q = NULL;
        error = ENOMEM;
        goto fail;
    }
    (void)uv_poll_start(&lookup->poll, UV_READABLE, on_answer);
    return lookup;
fail:
    free(lookup);
    free(q);
    errno = error;
    return NULL;
}
