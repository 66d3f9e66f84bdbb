#include "daemon/lib/base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/elapsed.h"
#include "proto/text.h"

static struct log_kind *find_kind(struct log_kinds *all, const char *format)
{
    for (unsigned i = 0; i < all->count; i++)
        if (all->kind[i].format == format)
            return &all->kind[i];
    if (all->count == LOG_KINDS)
        return NULL;
    struct log_kind *k = &all->kind[all->count++];
    k->format = format;
    return k;
}

bool log_kinds_take(struct log_kinds *all, const char *format, int level, const char *text,
                    uint64_t now)
{
    struct log_kind *k = find_kind(all, format);

    if (k == NULL)
        return true;
    if (k->full_at < now)
        k->full_at = now;
    if (k->full_at - now <= (LOG_KIND_AT_ONCE - 1) * LOG_KIND_LINE_NS) {
        k->full_at += LOG_KIND_LINE_NS;
        return true;
    }
    if (k->left_out++ == 0)
        k->since = now;
    k->level = level;
    (void)snprintf(k->last, sizeof k->last, "%s", text);
    return false;
}

struct log_kind *log_kinds_left_out(struct log_kinds *all, uint64_t now, uint64_t time)
{
    for (unsigned i = 0; i < all->count; i++)
        if (all->kind[i].left_out > 0 && elapsed(all->kind[i].since, now) >= time)
            return &all->kind[i];
    return NULL;
}

#define LINE_MOST 1024u
#define ROOM ((size_t)256 * 1024)
#define WRITER_WAIT_MS 20 /* how long a caller waits until its line is written */
#define END_WAIT_MS 1000
#define REPORT_MS 1000 /* between two reports of lines that were left out */

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

/* Lines that the writer thread has not written yet. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t more,
        less; /* more: lines wait, or the log ends. less: lines have been written */
    pthread_t thread;
    char *line;         /* ROOM bytes; NULL: there is no thread */
    size_t length;      /* bytes that wait to be written */
    uint64_t put, done; /* bytes, from the start */
    unsigned lost;      /* lines left out for lack of room since the last line that found room */
    /* a caller's wait has timed out: callers do not wait again before the queue is empty */
    bool behind;
    bool ending;
    struct log_kinds kinds;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Lines that could not be written, because a disk is full or a pipe has no reader. The next line
 * that can be written reports them. */
static struct {
    unsigned lines;
    bool torn; /* the last written line is cut off */
} unwritten;

/* Returns how many bytes could be written. */
static size_t write_all(const char *bytes, size_t length)
{
    size_t done = 0;

    while (done < length) {
        ssize_t n = write(STDERR_FILENO, bytes + done, length - done);
        struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            (void)poll(&room, 1, -1);
        else if (n <= 0)
            break;
        else
            done += (size_t)n;
    }
    return done;
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

static void count_unwritten(const char *lines, size_t length)
{
    for (size_t i = 0; i < length; i++)
        unwritten.lines += lines[i] == '\n';
}

static void write_whole(const char *lines, size_t length)
{
    if (unwritten.torn)
        unwritten.torn = write_all("\n", 1) == 0;
    const size_t done = unwritten.torn ? 0 : write_all(lines, length);
    unwritten.torn = unwritten.torn || (done > 0 && lines[done - 1] != '\n');
    count_unwritten(lines + done, length - done);
}

static void tell_unwritten(void)
{
    const unsigned before = unwritten.lines;
    char line[LINE_MOST];

    if (before == 0)
        return;
    size_t n = begin_line(line, LOG_LEVEL_WARNING);
    n += (size_t)snprintf(
        line + n, sizeof line - n, "%u %s missing here: %s could not be written in time\n", before,
        text_plural(before, "line is", "lines are"), text_plural(before, "it", "they"));
    unwritten.lines = 0;
    write_whole(line, n);
    if (unwritten.lines > 0)
        unwritten.lines = before; /* the report itself does not count */
}

/* Writes whole lines; first reports lines that are missing before them. */
static void write_lines(const char *lines, size_t length)
{
    tell_unwritten();
    if (unwritten.lines == 0)
        write_whole(lines, length);
    else
        count_unwritten(lines, length);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Appends a line. Returns false if there is no room. The lock is held. */
static bool append_to_queue(const char *line, size_t length)
{
    if (queue.length + length > ROOM)
        return false;
    memcpy(queue.line + queue.length, line, length);
    queue.length += length;
    queue.put += length;
    return true;
}

/* Reports how many lines have been left out: for all kinds, or only for kinds whose report is due. The lock
 * is held. */
static void report_left_out(bool all)
{
    const uint64_t now = now_ns();
    struct log_kind *k;

    while ((k = log_kinds_left_out(&queue.kinds, now, all ? 0 : LOG_KIND_REPORT_NS)) != NULL) {
        char line[LINE_MOST];
        size_t n = begin_line(line, (enum log_level)k->level);
        n += (size_t)snprintf(
            line + n, sizeof line - n, "%u more %s left out in %u s, the last one: %s\n",
            k->left_out,
            text_plural(k->left_out, "line like this one was", "lines like this one were"),
            (unsigned)(elapsed(k->since, now) / 1000000000), k->last);
        if (!append_to_queue(line, n))
            return;
        k->left_out = 0;
    }
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

/* Waits for lines, or for the time to report lines that were left out. The lock is held. */
static void wait_for_more(void)
{
    const struct timespec soon = in_milliseconds(REPORT_MS);

    if (log_kinds_left_out(&queue.kinds, now_ns(), 0) == NULL)
        (void)pthread_cond_wait(&queue.more, &queue.lock);
    else
        (void)pthread_cond_timedwait(&queue.more, &queue.lock, &soon);
}

static void *write_queue(void *unused)
{
    char *taken = malloc(ROOM);

    (void)unused;
    (void)pthread_mutex_lock(&queue.lock);
    while (!queue.ending || queue.length > 0) {
        report_left_out(false);
        if (queue.length == 0) {
            wait_for_more();
            continue;
        }
        /* Takes all waiting lines together, so that lines of several processes on one terminal do not mix. */
        size_t length = taken != NULL || queue.length < LINE_MOST ? queue.length : LINE_MOST;
        char few[LINE_MOST], *bytes = taken != NULL ? taken : few;
        unsigned lost = queue.lost;
        memcpy(bytes, queue.line, length);
        memmove(queue.line, queue.line + length, queue.length - length);
        queue.length -= length;
        queue.lost = 0;
        (void)pthread_mutex_unlock(&queue.lock);
        write_lines(bytes, length);
        unwritten.lines += lost;
        tell_unwritten();
        (void)pthread_mutex_lock(&queue.lock);
        queue.done += length;
        queue.behind = queue.behind && queue.length > 0;
        (void)pthread_cond_broadcast(&queue.less);
    }
    (void)pthread_mutex_unlock(&queue.lock);
    free(taken);
    return NULL;
}

/* Waits until that many bytes have been written. Returns false if that takes too long. The lock is
 * held. */
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
    (void)pthread_cond_init(&queue.more, &monotonic);
    (void)pthread_cond_init(&queue.less, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    queue.ending = queue.behind = false;
    queue.line = malloc(ROOM);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for other threads */
    if (queue.line != NULL && pthread_create(&queue.thread, NULL, write_queue, NULL) != 0) {
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
    report_left_out(true);
    (void)pthread_cond_signal(&queue.more);
    bool written = wait_until_done(queue.put, END_WAIT_MS);
    queue.ending = true;
    (void)pthread_cond_signal(&queue.more);
    (void)pthread_mutex_unlock(&queue.lock);
    if (!written) { /* the thread hangs in a write: it keeps its memory until the process ends */
        (void)pthread_detach(queue.thread);
        return;
    }
    (void)pthread_join(queue.thread, NULL);
    free(queue.line);
    queue.line = NULL;
}

/* Puts a line into the queue. The lock is held. */
static void put_line(const char *line, size_t length)
{
    if (!append_to_queue(line, length)) {
        queue.lost++;
        return;
    }
    (void)pthread_cond_signal(&queue.more);
    if (!queue.behind)
        queue.behind = !wait_until_done(queue.put, WRITER_WAIT_MS);
}

/* Hands over a line that ends with '\n'. Debug lines are never left out as too many, because the user has
 * asked for them. */
static void hand_over(enum log_level level, const char *format, const char *line, size_t begin,
                      size_t length)
{
    char text[LOG_KIND_TEXT_SIZE];

    (void)snprintf(text, sizeof text, "%.*s", (int)(length - begin - 1), line + begin);
    (void)pthread_mutex_lock(&queue.lock);
    if (level == LOG_LEVEL_DEBUG ||
        log_kinds_take(&queue.kinds, format, (int)level, text, now_ns()))
        put_line(line, length);
    (void)pthread_mutex_unlock(&queue.lock);
}

void log_write(enum log_level level, const char *format, ...)
{
    char line[LINE_MOST];
    va_list ap;

    if (level > threshold)
        return;
    const size_t begin = begin_line(line, level);
    size_t n = begin;
    va_start(ap, format);
    int written = vsnprintf(line + n, sizeof line - n - 1, format, ap);
    va_end(ap);
    if (written > 0)
        n += (size_t)written < sizeof line - n - 1 ? (size_t)written : sizeof line - n - 2;
    /* Text from peers must not be able to forge log lines. */
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = '?';
    line[n++] = '\n';
    if (queue.line != NULL)
        hand_over(level, format, line, begin, n);
    else
        write_lines(line, n);
}
