#include "client/cli/discovering/gather.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/discovering/discovery_child.h"
#include "client/cli/discovering/discovery_socket.h"
#include "client/cli/terminal/clock.h"
#include "client/cli/terminal/long_work.h"
#include "daemon/lib/schedule/work.h"
#include "proto/notices.h"
#include "proto/text.h"

#define ASK_MS 200
#define QUIET_MS 3000      /* nothing has changed for this time: the picture is complete */
#define QUIET_ODD_MS 10000 /* ... while one end of a cable does not hear the other */
#define CHILD_MS 6000      /* an interface that is set up needs a moment */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

struct handlers {
    struct sigaction interrupt, terminate, hangup;
};

static void arm(struct handlers *before)
{
    const struct sigaction action = {.sa_handler = on_signal};

    interrupted = 0;
    (void)sigaction(SIGINT, &action, &before->interrupt);
    (void)sigaction(SIGTERM, &action, &before->terminate);
    (void)sigaction(SIGHUP, &action, &before->hangup);
}

static void disarm(const struct handlers *before)
{
    (void)sigaction(SIGINT, &before->interrupt, NULL);
    (void)sigaction(SIGTERM, &before->terminate, NULL);
    (void)sigaction(SIGHUP, &before->hangup, NULL);
}

static void tell(const struct discovered *d, size_t cables)
{
    if (!notices_wanted())
        return;
    long_work_next("discovery (%u %s, %zu %s)", d->hosts, text_plural(d->hosts, "host", "hosts"),
                   cables, text_plural(cables, "cable", "cables"));
    watch_tell(-1);
}

/* Whether nothing more is to be expected. */
static bool is_complete(const struct discovered *d, int64_t waited_ms, bool child)
{
    struct discovered_cable *cable;
    size_t cables = discovered_cables(d, &cable);
    bool odd = false;

    for (size_t i = 0; i < cables; i++)
        odd |= !cable[i].mutual;
    for (uint32_t i = 0; i < d->hosts; i++)
        odd |= !d->host[i].reachable;
    free(cable);
    tell(d, cables);
    return d->quiet_ms >= (odd ? QUIET_ODD_MS : QUIET_MS) && (!child || waited_ms >= CHILD_MS);
}

/* Asks until the picture is complete. `child` is NULL if the process was there before. */
static int ask(struct discovered *d, const struct gather_options *o, const char *socket,
               struct discovery_child *child, bool *settled, struct error *e)
{
    const struct timespec pause = {0, ASK_MS * 1000000L};
    const int64_t began = clock_ms();
    bool answered = false;

    *settled = false;
    while (!*settled && (!answered || clock_ms() - began < (int64_t)o->wait_ms)) {
        discovered_free(d);
        if (discover_hosts(socket, d, e) == 0) {
            answered = true;
            *settled = is_complete(d, clock_ms() - began, child != NULL);
        } else if (child == NULL || clock_ms() - began > (int64_t)o->wait_ms) {
            return -1;
        } else if (discovery_child_check(child, e) != 0) {
            errno = 0;
            return -1;
        }
        if (interrupted) {
            discovered_free(d);
            return error_set(e, ERROR_CANCELLED, "interrupted");
        }
        if (!*settled)
            (void)nanosleep(&pause, NULL);
    }
    return 0;
}

int gather_hosts(struct discovered *d, const struct gather_options *o, bool *settled,
                 struct error *e)
{
    struct discovery_child child;
    struct handlers before;
    int result, error;

    *d = (struct discovered){0};
    arm(&before);
    result = ask(d, o, o->socket, NULL, settled, e);
    error = errno;
    if (result != 0 && (error == ENOENT || error == ECONNREFUSED) && o->interfaces != NULL &&
        o->socket == NULL) {
        error = 0;
        result = discovery_child_start(&child, o->interfaces, o->key_file, e);
        if (result == 0) {
            result = ask(d, o, child.socket, &child, settled, e);
            discovery_child_stop(&child);
        }
    }
    disarm(&before);
    errno = error;
    return result;
}
