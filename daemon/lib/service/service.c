#include "daemon/lib/service/service.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"

/* Opens the way to the socket at `path`: a path, or a name that begins with '@' (an abstract socket). NULL: there
 * is not a service manager, and notify_send() does nothing. Returns 0, or -1 with *e. The caller gives *n to
 * notify_close() in any case. */
static int notify_open(struct notify *n, const char *path, struct error *e)
{
    size_t length = path != NULL ? strlen(path) : 0;

    *n = (struct notify){.socket = -1, .address = {.sun_family = AF_UNIX}};
    if (length == 0)
        return 0;
    if (path[0] != '/' && path[0] != '@')
        return error_set(e, ERROR_USAGE, "NOTIFY_SOCKET is \"%.80s\", and not the path of a socket",
                         path);
    if (length >= sizeof n->address.sun_path)
        return error_set(
            e, ERROR_USAGE,
            "the path in NOTIFY_SOCKET is too long: %zu bytes, at most %zu are possible", length,
            sizeof n->address.sun_path - 1);
    memcpy(n->address.sun_path, path, length);
    if (path[0] == '@')
        n->address.sun_path[0] = '\0';
    /* The name of an abstract socket has no terminating zero. */
    n->length =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (path[0] == '@' ? 0 : 1));
    n->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (n->socket < 0)
        return error_set(e, ERROR_IO, "cannot open a socket to the service manager: %s",
                         strerror(errno));
    return 0;
}

/* Closes the socket. */
static void notify_close(struct notify *n)
{
    if (n->socket >= 0)
        (void)close(n->socket);
    n->socket = -1;
}

/* Sends lines such as "READY=1\nSTATUS=ready". Never waits. Returns 0 if the message was sent or there is no
 * service manager; otherwise -1: its queue is full, and the caller may try again later. */
static int notify_send(const struct notify *n, const char *lines)
{
    size_t length = strlen(lines);

    if (n->socket < 0)
        return 0;
    return sendto(n->socket, lines, length, MSG_NOSIGNAL, (const struct sockaddr *)&n->address,
                  n->length) == (ssize_t)length
               ? 0
               : -1;
}

/* Returns after how many microseconds without WATCHDOG=1 the service manager takes this process for hung; 0:
 * never. The arguments are the values of $WATCHDOG_USEC and $WATCHDOG_PID, or NULL. */
static uint64_t notify_watchdog(const char *usec, const char *pid)
{
    char *end;
    unsigned long long limit;

    if (usec == NULL || usec[0] < '0' || usec[0] > '9')
        return 0;
    if (pid != NULL && strtoll(pid, NULL, 10) != getpid())
        return 0; /* it is meant for another process, which has started this one */
    errno = 0;
    limit = strtoull(usec, &end, 10);
    return *end == '\0' && errno == 0 ? limit : 0;
}

static const int all[] = {SIGHUP, SIGTERM, SIGINT};
#define SIGNALS (sizeof all / sizeof all[0])

/* Holds or releases the first `count` of them. */
static void set_mask(int how, size_t count)
{
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < count; i++)
        (void)sigaddset(&set, all[i]);
    (void)pthread_sigmask(how, &set, NULL);
}

void signals_hold_reload(void)
{
    set_mask(SIG_BLOCK, 1);
}

void signals_hold(void)
{
    set_mask(SIG_BLOCK, SIGNALS);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct signals *s = handle->data;

    if (number == SIGHUP)
        s->reload(s->context);
    else
        s->stop(s->context, number == SIGINT ? "SIGINT" : "SIGTERM");
}

void signals_open(struct signals *s, uv_loop_t *loop)
{
    for (size_t i = 0; i < SIGNALS; i++) {
        (void)uv_signal_init(loop, &s->handles[i]);
        s->handles[i].data = s;
        (void)uv_signal_start(&s->handles[i], on_signal, all[i]);
    }
    set_mask(SIG_UNBLOCK, SIGNALS);
}

void signals_close(struct signals *s)
{
    signals_hold();
    for (size_t i = 0; i < SIGNALS; i++)
        uv_close((uv_handle_t *)&s->handles[i], NULL);
}

#define STATUS_INTERVAL_MS 1000u
#define TICK_LEAST_MS 10u
#define WATCHDOG_PARTS                                                                             \
    3u /* how many times WATCHDOG=1 is sent in the time that the manager waits for it */
#define USEC_PER_MS 1000u
#define READY "READY=1"

/* Sends a change of state; if there is no room for it now, the timer sends it later. */
static void tell(struct service *s, const char *lines)
{
    s->unsent = notify_send(&s->notify, lines) == 0 ? NULL : lines;
}

/* Sends the line about the state, if it has changed. */
static void tell_status(struct service *s)
{
    char lines[sizeof "STATUS=" + SERVICE_STATUS_SIZE], *now = lines + strlen("STATUS=");

    (void)strcpy(lines, "STATUS=");
    s->status(s->context, now);
    if (strcmp(now, s->told) != 0 && notify_send(&s->notify, lines) == 0)
        (void)strcpy(s->told, now);
}

static void on_tick(uv_timer_t *timer)
{
    struct service *s = timer->data;
    uint64_t now = uv_now(timer->loop);

    if (s->unsent != NULL)
        tell(s, s->unsent);
    if (s->watchdog_ms != 0 && now >= s->watchdog_at && notify_send(&s->notify, "WATCHDOG=1") == 0)
        s->watchdog_at = now + s->watchdog_ms;
    if (now >= s->status_at) {
        s->status_at = now + STATUS_INTERVAL_MS;
        tell_status(s);
    }
}

void service_open(struct service *s, uv_loop_t *loop, service_status_fn *status, void *context)
{
    uint64_t limit = notify_watchdog(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID")), tick;
    struct error e;

    *s = (struct service){.status = status, .context = context};
    if (notify_open(&s->notify, getenv("NOTIFY_SOCKET"), &e) != 0)
        log_warning("the service manager is not told that this daemon is ready: %s", e.text);
    if (s->notify.socket < 0)
        return;
    s->watchdog_ms = limit / USEC_PER_MS / WATCHDOG_PARTS;
    if (limit != 0 && s->watchdog_ms < TICK_LEAST_MS)
        s->watchdog_ms = TICK_LEAST_MS;
    tick = s->watchdog_ms != 0 && s->watchdog_ms < STATUS_INTERVAL_MS ? s->watchdog_ms
                                                                      : STATUS_INTERVAL_MS;
    (void)uv_timer_init(loop, &s->timer);
    s->timer.data = s;
    (void)uv_timer_start(&s->timer, on_tick, 0, tick);
    s->ticks = true;
}

void service_ready(struct service *s)
{
    tell(s, READY);
}

void service_reloading(struct service *s)
{
    struct timespec now;
    char lines[64];

    if (s->notify.socket < 0)
        return;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    /* systemd 253 and later tell by the time which reload this is. */
    (void)snprintf(lines, sizeof lines, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                   (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u);
    /* If there is no room, the manager only does not learn of the reload; READY=1 follows in any case. */
    (void)notify_send(&s->notify, lines);
}

void service_stopping(struct service *s)
{
    if (s->ticks)
        uv_close((uv_handle_t *)&s->timer, NULL);
    s->ticks = false;
    tell(s, "STOPPING=1");
}

void service_close(struct service *s)
{
    notify_close(&s->notify);
}
