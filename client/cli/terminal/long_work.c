#include "client/cli/terminal/long_work.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "client/cli/terminal/clock.h"
#include "daemon/lib/schedule/work.h"
#include "proto/notices.h"

#define REDRAW_MS 200 /* on a terminal, where the line is drawn again in place */

static struct {
    char name[120];
    int64_t began_ms, printed_ms;
    double done; /* last reported part, 0 to 1; below 0: not known */
    bool terminal, printed;
} work;

static void print_notice(int64_t now)
{
    char part[32] = "";

    if (work.done >= 0)
        (void)snprintf(part, sizeof part, "%d %%, ", (int)(work.done * 100));
    (void)fprintf(stderr, "%storusctl: still working on %s: %s%" PRId64 " s so far%s",
                  work.terminal ? "\r" : "", work.name, part, (now - work.began_ms) / 1000,
                  work.terminal ? "\033[K" : "\n");
    work.printed = true;
    work.printed_ms = now;
}

static void on_watch(void *context, double done)
{
    int64_t now = clock_ms();
    int64_t pause = work.terminal ? REDRAW_MS : NOTICE_AGAIN_MS;

    (void)context;
    if (done >= 0)
        work.done = done < 1 ? done : 1;
    if (now - work.began_ms >= NOTICE_FIRST_MS && (!work.printed || now - work.printed_ms >= pause))
        print_notice(now);
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

    work.printed = false;
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
    if (work.printed && work.terminal)
        (void)fputs("\r\033[K", stderr);
    work.printed = false;
}
