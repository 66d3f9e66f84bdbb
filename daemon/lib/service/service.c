#include "daemon/lib/service/service.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/lib/base/log.h"

#define STATUS_INTERVAL_MS 1000u
#define TICK_LEAST_MS 10u
#define WATCHDOG_PARTS                                                                             \
    3u /* WATCHDOG=1 is sent so many times in the time that the manager waits for it */
#define USEC_PER_MS 1000u
#define READY "READY=1"

/* Sends a change of state; if there is no room for it now, the timer sends it later. */
static void tell(struct service *s, const char *lines)
{
    s->owed = notify_send(&s->notify, lines) == 0 ? NULL : lines;
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

    if (s->owed != NULL)
        tell(s, s->owed);
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
