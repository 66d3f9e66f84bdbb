#include "daemon/lib/host/processor.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int processor_open(void)
{
    return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

void processor_close(int file)
{
    if (file >= 0)
        (void)close(file);
}

void processor_read(int file, uint64_t *used, uint64_t *delayed)
{
    struct timespec now;
    char text[128];
    ssize_t length = file >= 0 ? pread(file, text, sizeof text - 1, 0) : -1;
    unsigned long long run, wait;

    *used = *delayed = 0;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0)
        *used = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    if (length <= 0)
        return;
    text[length] = '\0';
    if (sscanf(text, "%llu %llu", &run, &wait) == 2)
        *delayed = wait;
}
