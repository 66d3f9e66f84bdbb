/* A discovery process: discovery on the interfaces of this host, the discovery socket, and the command for
 * setups, on one loop. */
#ifndef TORUSD_DISCOVERY_PROCESS_PROCESS_H
#define TORUSD_DISCOVERY_PROCESS_PROCESS_H

#include <uv.h>

#include "daemon/discovery/discovery.h"

/* Settings that may change while the process runs. */
struct process_settings {
    struct secrets secrets;
    char dims[TORUS_TEXT_SIZE]; /* as configured; "": not configured */
    bool have_rank;
    uint32_t rank;
};

struct process_setup {
    const char *interfaces; /* interfaces_check() */
    const char *socket;
    const char *name;    /* "": that of the system */
    const char *command; /* for setups; "": none are accepted */
    bool set_up_links;   /* sets interfaces up that are down */
    /* Fills *settings, which is zeroed. Returns 0, or -1 with *e. */
    int (*read_settings)(void *context, struct process_settings *settings, struct error *e);
    void *context;
};

struct discovery_process;

/* Starts discovery; *setup must outlive it. Returns NULL with *e and nothing left open. */
struct discovery_process *
discovery_process_start(uv_loop_t *loop, const struct process_setup *setup, struct error *e);

/* Reads the settings again; if that fails, they stay as they are, and the log says so. */
void discovery_process_read_settings(struct discovery_process *p);

/* Closes everything, and frees *p when the loop has closed the handles. */
void discovery_process_stop(struct discovery_process *p);

#endif
