#include "daemon/base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MOST 1024u
#define ROOM ((size_t)256 * 1024)
#define PATIENCE_MS 20 /* of those who log, for their line to be written */
#define LAST_PATIENCE_MS 1000

static const char *const names[] = {"error", "warning", "info", "debug"};
static enum log_level threshold = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
    threshold = level;
}

int log_level_parse(const char *name)
{
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* Lines that the thread has not written yet. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t more, less; /* lines to be written, or the end; lines have been written */
    pthread_t thread;
    char *line;         /* ROOM bytes; NULL: there is no thread */
    size_t length;      /* of all that is there */
    uint64_t put, done; /* bytes, from the start */
    unsigned lost;      /* lines, since one was last taken */
    bool behind;        /* somebody has waited in vain: nobody waits until all is written */
    bool ending;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void write_all(const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(STDERR_FILENO, bytes, length);
        struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            (void)poll(&room, 1, -1);
        else if (n <= 0)
            return; /* nobody will ever read it */
        else
            bytes += n, length -= (size_t)n;
    }
}

/* "2026-01-31T12:34:56.789Z warning " */
static size_t begin_line(char line[LINE_MOST], enum log_level level)
{
    struct timespec now;
    struct tm tm;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &tm);
    size_t n = strftime(line, LINE_MOST, "%Y-%m-%dT%H:%M:%S", &tm);
    return n + (size_t)snprintf(line + n, LINE_MOST - n, ".%03ldZ %-7s ", now.tv_nsec / 1000000,
                                names[level]);
}

static void tell_lost(unsigned lost)
{
    char line[LINE_MOST];
    size_t n = begin_line(line, LOG_LEVEL_WARNING);

    n += (size_t)snprintf(line + n, sizeof line - n,
                          "%u lines are missing here: they could not be written in time\n", lost);
    write_all(line, n);
}

static void *write_lines(void *unused)
{
    char *taken = malloc(ROOM);

    (void)unused;
    (void)pthread_mutex_lock(&queue.lock);
    while (!queue.ending || queue.length > 0) {
        if (queue.length == 0) {
            (void)pthread_cond_wait(&queue.more, &queue.lock);
            continue;
        }
        /* All that is there, so that lines of several processes on one terminal do not mix. */
        size_t length = taken != NULL || queue.length < LINE_MOST ? queue.length : LINE_MOST;
        char few[LINE_MOST], *bytes = taken != NULL ? taken : few;
        unsigned lost = queue.lost;
        memcpy(bytes, queue.line, length);
        memmove(queue.line, queue.line + length, queue.length - length);
        queue.length -= length;
        queue.lost = 0;
        (void)pthread_mutex_unlock(&queue.lock);
        write_all(bytes, length);
        if (lost > 0)
            tell_lost(lost);
        (void)pthread_mutex_lock(&queue.lock);
        queue.done += length;
        queue.behind = queue.behind && queue.length > 0;
        (void)pthread_cond_broadcast(&queue.less);
    }
    (void)pthread_mutex_unlock(&queue.lock);
    free(taken);
    return NULL;
}

static struct timespec in_milliseconds(long milliseconds)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += milliseconds % 1000 * 1000000;
    at.tv_sec += milliseconds / 1000 + at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

/* Until so many bytes have been written. Returns false if that takes too long. The lock is held. */
static bool wait_until_done(uint64_t bytes, long milliseconds)
{
    const struct timespec until = in_milliseconds(milliseconds);
    int result = 0;

    while (queue.done < bytes && result == 0)
        result = pthread_cond_timedwait(&queue.less, &queue.lock, &until);
    return queue.done >= bytes;
}

void log_begin(void)
{
    sigset_t all, before;
    pthread_condattr_t monotonic;

    if (queue.line != NULL || pthread_condattr_init(&monotonic) != 0)
        return;
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&queue.more, NULL);
    (void)pthread_cond_init(&queue.less, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    queue.ending = queue.behind = false;
    queue.line = malloc(ROOM);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the others */
    if (queue.line != NULL && pthread_create(&queue.thread, NULL, write_lines, NULL) != 0) {
        free(queue.line);
        queue.line = NULL;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void log_end(void)
{
    if (queue.line == NULL)
        return;
    (void)pthread_mutex_lock(&queue.lock);
    bool written = wait_until_done(queue.put, LAST_PATIENCE_MS);
    queue.ending = true;
    (void)pthread_cond_signal(&queue.more);
    (void)pthread_mutex_unlock(&queue.lock);
    if (!written) { /* it hangs in a write, and the process ends: what it has stays its own */
        (void)pthread_detach(queue.thread);
        return;
    }
    (void)pthread_join(queue.thread, NULL);
    free(queue.line);
    queue.line = NULL;
}

static void put(const char *line, size_t length)
{
    (void)pthread_mutex_lock(&queue.lock);
    if (queue.length + length > ROOM) {
        queue.lost++;
        (void)pthread_mutex_unlock(&queue.lock);
        return;
    }
    memcpy(queue.line + queue.length, line, length);
    queue.length += length;
    queue.put += length;
    (void)pthread_cond_signal(&queue.more);
    if (!queue.behind)
        queue.behind = !wait_until_done(queue.put, PATIENCE_MS);
    (void)pthread_mutex_unlock(&queue.lock);
}

void log_write(enum log_level level, const char *format, ...)
{
    char line[LINE_MOST];
    va_list ap;

    if (level > threshold)
        return;
    size_t n = begin_line(line, level);
    va_start(ap, format);
    int written = vsnprintf(line + n, sizeof line - n - 1, format, ap);
    va_end(ap);
    if (written > 0)
        n += (size_t)written < sizeof line - n - 1 ? (size_t)written : sizeof line - n - 2;
    /* Text from peers must not forge lines of ours. */
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = '?';
    line[n++] = '\n';
    if (queue.line != NULL)
        put(line, n);
    else
        write_all(line, n);
}
