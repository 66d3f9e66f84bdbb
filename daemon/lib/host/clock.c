/* Whether something keeps the clock right. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/lib/host/gather.h"

/* Whether a filter of system calls may end the process that asks about the clock. */
static bool is_filtered(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[128];
    unsigned mode = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Seccomp: %u", &mode) == 1)
            break;
    if (file != NULL)
        (void)fclose(file);
    return mode != 0;
}

static bool is_unsynchronised(int state, const struct timex *t)
{
    return state == TIME_ERROR || (t->status & STA_UNSYNC) != 0;
}

/* Asks in a process of its own, which such a filter may end. Returns what adjtimex() returns, with its errno; EACCES: the
 * filter has ended the process. It is no fork(): that would copy the tables of all the memory of the daemon. */
static int ask_apart(bool *unsynchronised)
{
    enum { UNSYNCHRONISED = 200, KEPT = 201 }; /* errors are smaller */
    struct timex t = {0};
    int status = 0;
    const pid_t child = vfork();

    if (child == 0) {
        const int state = adjtimex(&t);
        if (state < 0)
            _exit(errno);
        _exit(is_unsynchronised(state, &t) ? UNSYNCHRONISED : KEPT);
    }
    if (child < 0)
        return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EACCES;
    *unsynchronised = errno == UNSYNCHRONISED;
    return errno == UNSYNCHRONISED || errno == KEPT ? 0 : -1;
}

static int ask(bool *unsynchronised)
{
    struct timex t = {0};

    if (is_filtered())
        return ask_apart(unsynchronised);
    const int state = adjtimex(&t);
    *unsynchronised = is_unsynchronised(state, &t);
    return state;
}

void gather_clock(struct facts *f)
{
    struct timespec now;
    bool unsynchronised;

    if (ask(&unsynchronised) >= 0)
        facts_add(f, "clock.synchronised", "%s", unsynchronised ? "no" : "yes");
    else if (access("/run/systemd/timesync/synchronized", F_OK) == 0)
        facts_add(f, "clock.synchronised", "yes");
    else
        facts_add(f, "unseen.clock.synchronised",
                  "torusd may not ask for the state of the clock (ProtectClock=yes in its unit)");
    if (clock_gettime(CLOCK_REALTIME, &now) == 0)
        facts_add(f, "clock.seconds", "%lld", (long long)now.tv_sec);
}
