#include "client/cli/terminal/long_work.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "client/cli/terminal/clock.h"
#include "daemon/schedule/watch.h"
#include "proto/notices.h"

#define REDRAW_MS 200 /* on a terminal, in place; elsewhere each is one more line */

static struct {
    char name[120];
    int64_t began_ms, said_ms;
    double done; /* as it was told last; below 0: not known */
    bool terminal, said;
} work;

static void say(int64_t now)
{
    char part[32] = "";

    if (work.done >= 0)
        (void)snprintf(part, sizeof part, "%d %%, ", (int)(work.done * 100));
    (void)fprintf(stderr, "%storusctl: still at work on %s: %s%" PRId64 " s so far%s",
                  work.terminal ? "\r" : "", work.name, part, (now - work.began_ms) / 1000,
                  work.terminal ? "\033[K" : "\n");
    work.said = true;
    work.said_ms = now;
}

static void on_watch(void *context, double done)
{
    int64_t now = clock_ms();
    int64_t pause = work.terminal ? REDRAW_MS : NOTICE_AGAIN_MS;

    (void)context;
    if (done >= 0)
        work.done = done < 1 ? done : 1;
    if (now - work.began_ms >= NOTICE_FIRST_MS && (!work.said || now - work.said_ms >= pause))
        say(now);
}

void long_work_next(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(work.name, sizeof work.name, format, ap);
    va_end(ap);
    work.done = -1;
}

void long_work_begin(const char *format, ...)
{
    va_list ap;

    work.said = false;
    work.terminal = isatty(STDERR_FILENO) == 1;
    work.began_ms = clock_ms();
    work.done = -1;
    va_start(ap, format);
    (void)vsnprintf(work.name, sizeof work.name, format, ap);
    va_end(ap);
    watch_set(on_watch, NULL);
}

void long_work_end(void)
{
    watch_set(NULL, NULL);
    if (work.said && work.terminal)
        (void)fputs("\r\033[K", stderr);
    work.said = false;
}
