/* The signals of a daemon: SIGTERM and SIGINT end it, SIGHUP makes it read its settings again. From the moment when there
 * is something to remove at the end, until the loop can handle them, they are held: one that arrives meanwhile is
 * handled as soon as the daemon has started, and neither ends it half-started nor is lost. */
#pragma once

#include <uv.h>

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
