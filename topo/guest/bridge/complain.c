#include "topo/guest/bridge/complain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void write_line(const char *format, va_list list)
{
    (void)fputs("bridge: ", stderr);
    (void)vfprintf(stderr, format, list);
    (void)fputc('\n', stderr);
}

void complain(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    write_line(format, list);
    va_end(list);
}

void die(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    write_line(format, list);
    va_end(list);
    exit(1);
}
