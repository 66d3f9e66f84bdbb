/* Tells the service manager (systemd) what the daemon does: that it is ready, reloads or stops, one line about
 * its state, and, for the manager's watchdog, that its loop runs. Without a service manager, does nothing. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "daemon/lib/service/notify.h"

#define SERVICE_STATUS_SIZE 256u

/* Writes the line about the state, which ends with a zero. */
typedef void service_status_fn(void *context, char out[SERVICE_STATUS_SIZE]);

struct service {
    struct notify notify;
    uv_timer_t timer;
    bool ticks;
    service_status_fn *status;
    void *context;
    char told[SERVICE_STATUS_SIZE]; /* the status that the manager has */
    const char *owed;     /* a change of state that the manager has not been told; NULL: none */
    uint64_t watchdog_ms; /* interval between two WATCHDOG=1; 0: none */
    uint64_t watchdog_at, status_at; /* when these messages may be sent next, in the loop's time */
};

/* Opens the way to the service manager that the environment names. If that fails, logs a warning. The caller calls
 * service_stopping() and then, after the loop has ended, service_close(). */
void service_open(struct service *s, uv_loop_t *loop, service_status_fn *status, void *context);

/* The daemon serves, at the start or after a reload. */
void service_ready(struct service *s);

/* The daemon begins to read its settings again; service_ready() follows. */
void service_reloading(struct service *s);

/* The daemon ends; nothing more is sent. */
void service_stopping(struct service *s);

/* Closes the socket. */
void service_close(struct service *s);
