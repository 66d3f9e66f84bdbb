/* Preloaded into a rank: its clock runs irregularly. Every reading is later than the one before, by up to some
 * milliseconds more than the time that has passed. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_NS 2000000

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static _Thread_local unsigned seed = 1;
    static _Thread_local long added;
    const int result = (int)syscall(SYS_clock_gettime, clock, time);

    if (result != 0 || clock != CLOCK_MONOTONIC)
        return result;
    added += rand_r(&seed) % 8 == 0 ? rand_r(&seed) % MOST_NS : 0;
    time->tv_sec += (time->tv_nsec + added) / 1000000000;
    time->tv_nsec = (time->tv_nsec + added) % 1000000000;
    return result;
}
