#include "client/cli/terminal/clock.h"

#include <time.h>

static struct timespec now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t;
}

int64_t clock_ms(void)
{
    struct timespec t = now();

    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

double clock_seconds(void)
{
    struct timespec t = now();

    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
