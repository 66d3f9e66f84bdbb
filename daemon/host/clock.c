/* Whether something keeps the clock right. */
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "daemon/host/gather.h"

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

void gather_clock(struct facts *f)
{
    struct timex t = {0};
    struct timespec now;
    int state;

    if (is_filtered()) {
        if (access("/run/systemd/timesync/synchronized", F_OK) == 0)
            facts_add(f, "clock.synchronised", "yes");
    } else if ((state = adjtimex(&t)) >= 0) {
        facts_add(f, "clock.synchronised", "%s",
                  state != TIME_ERROR && (t.status & STA_UNSYNC) == 0 ? "yes" : "no");
        facts_add(f, "clock.error_us", "%ld", t.esterror);
    }
    if (clock_gettime(CLOCK_REALTIME, &now) == 0)
        facts_add(f, "clock.seconds", "%lld", (long long)now.tv_sec);
}
