/* Tells the service manager (systemd) what the daemon does: that it is ready, reloads or stops, one line about
 * its state, and, for the manager's watchdog, that its loop runs. Without a service manager, does nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <uv.h>

#include "proto/error.h"

/* Messages to the service manager: the protocol of sd_notify(3), lines in a datagram to the socket that
 * $NOTIFY_SOCKET names.
 *
 * The protocol is documented as stable, and is one sendto(). libsystemd, which has a function for it, would
 * bring several libraries (compression, cryptography) into a process that listens on the network, and make the
 * daemon depend on systemd. Hence these few lines. */

struct notify {
    int socket; /* -1: no service manager */
    struct sockaddr_un address;
    socklen_t length;
};

/* The signals of a daemon: SIGTERM and SIGINT end it, SIGHUP makes it read its settings again. From the moment when there
 * is something to remove at the end, until the loop can handle them, they are held: one that arrives meanwhile is
 * handled as soon as the daemon has started, and neither ends it half-started nor is lost. */

struct signals {
    uv_signal_t handles[3];
    /* SIGTERM or SIGINT, by its name; calls signals_close() */
    void (*stop)(void *context, const char *name);
    void (*reload)(void *context); /* SIGHUP */
    void *context;
};

/* Holds SIGHUP, which must not end a daemon that has yet to read its settings. A thread that is started while a signal is
 * held never gets it. */
void signals_hold_reload(void);

/* Holds all of them. */
void signals_hold(void);

/* Handles them on the loop, also those that have been held. The three functions and `context` are set. */
void signals_open(struct signals *s, uv_loop_t *loop);

/* The daemon stops: further signals do not disturb it. */
void signals_close(struct signals *s);

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
    const char *unsent;   /* a change of state that the manager has not been told; NULL: none */
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
