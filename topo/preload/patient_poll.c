/* A library for LD_PRELOAD: empty polls become short waits.
 *
 * MPI libraries poll again and again without waiting. With fewer processors than ranks, ranks that poll
 * keep ranks from running that have something to send. Here a call of epoll_wait(), epoll_pwait() or
 * poll() with timeout 0 waits up to $PATIENT_POLL_MS milliseconds (default: 1) after $PATIENT_POLL_EMPTY
 * (default: 2) such calls in a row that found nothing and were less than 0.2 ms apart: a program that
 * polls less often does not keep others from running. An event ends the wait at once. The first empty
 * call after an event never waits: Open MPI polls until nothing is left, and only then handles what it
 * has received. Programs that mpiexec has not started as ranks are left alone.
 */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define APART_NS 200000

static int wait_ms = 1, free_polls = 2;
static __thread int empty;
static __thread int64_t last; /* when the last call ended */

__attribute__((constructor)) static void configure(void)
{
    const char *ms = getenv("PATIENT_POLL_MS"), *polls = getenv("PATIENT_POLL_EMPTY");

    if (getenv("PMI_RANK") == NULL && getenv("OMPI_COMM_WORLD_RANK") == NULL)
        wait_ms = 0;
    else if (ms)
        wait_ms = atoi(ms);
    if (polls)
        free_polls = atoi(polls);
}

static int64_t now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Counts empty calls. Returns how long, in ms, this call may wait in a second attempt; 0 for no attempt. */
static int patience(int timeout, int found)
{
    int64_t before = last;

    last = now();
    if (found != 0 || (timeout == 0 && last - before > APART_NS))
        empty = 0;
    if (found == 0 && timeout == 0 && ++empty > free_polls)
        return wait_ms;
    return 0;
}

static int real_epoll(int fd, struct epoll_event *events, int most, int timeout,
                      const sigset_t *mask)
{
    return (int)syscall(SYS_epoll_pwait, fd, events, most, timeout, mask, _NSIG / 8);
}

static int real_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    struct timespec time = {.tv_sec = timeout / 1000, .tv_nsec = timeout % 1000 * 1000000L};

    return (int)syscall(SYS_ppoll, fds, count, timeout < 0 ? NULL : &time, NULL, _NSIG / 8);
}

int epoll_pwait(int fd, struct epoll_event *events, int most, int timeout, const sigset_t *mask)
{
    int found = real_epoll(fd, events, most, timeout, mask);
    int wait = patience(timeout, found);

    if (wait) {
        found = real_epoll(fd, events, most, wait, mask);
        patience(wait, found);
    }
    return found;
}

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
    return epoll_pwait(fd, events, most, timeout, NULL);
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    int found = real_poll(fds, count, timeout);
    int wait = patience(timeout, found);

    if (wait) {
        found = real_poll(fds, count, wait);
        patience(wait, found);
    }
    return found;
}
