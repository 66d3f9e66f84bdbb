#include "daemon/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

void log_write(enum log_level level, const char *format, ...)
{
    char line[1024];
    struct timespec now;
    struct tm tm;
    va_list ap;

    if (level > threshold)
        return;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &tm);
    size_t n = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(line + n, sizeof line - n, ".%03ldZ %-7s ", now.tv_nsec / 1000000,
                          names[level]);
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
    /* One write, so that lines of several processes on one terminal do not mix. */
    ssize_t ignored = write(STDERR_FILENO, line, n);
    (void)ignored;
}
