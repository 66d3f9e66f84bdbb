/* A fake daemon whose replies a test sets. It serves one connection in a thread of its own. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "proto/control.pb-c.h"
#include "proto/control_fields.h"
#include "proto/frame.h"

struct fake {
    char directory[32];
    char path[64];
    int listener;
    pthread_t thread;
    void (*serve)(int fd); /* closes nothing */
};

/* Listens at f->path and serves the first connection. Ends the program if that is not possible. */
void fake_start(struct fake *f, void (*serve)(int fd));

/* Waits until the connection has been served, and takes the socket away. */
void fake_stop(struct fake *f);

/* Ends the program unless the condition holds. Serve functions use it instead of cmocka's assertions, which work only
 * in the test's own thread. */
#define FAKE_MUST(condition) fake_must((condition), #condition)
void fake_must(bool holds, const char *condition);

/* For serve functions. The next request, to be freed with control__request__free_unpacked(), or
 * NULL if the client has closed its side. */
Control__Request *fake_request(int fd);
void fake_reply(int fd, const Control__Reply *reply);
void fake_write(int fd, const void *data, size_t length);

/* Takes the next request, which must be of this kind. */
void fake_expect(int fd, Control__Request__KindCase kind);

/* Replies with usual contents. */
void fake_reply_error(int fd, uint32_t code, const char *text, const char *exchange);
void fake_reply_status(int fd);
void fake_reply_links(int fd);
void fake_reply_accepted(int fd, const char *id);
void fake_reply_progress(int fd, const char *state, uint64_t done, uint64_t total);
void fake_reply_result(int fd);
/* The result of a barrier of 16 nodes, which came one after another, a millisecond apart. */
void fake_reply_barrier(int fd, const uint32_t *ranks, size_t count);
void fake_reply_repetitions(int fd); /* three: 0.2, 0.6 and 0.1 s */
