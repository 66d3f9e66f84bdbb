/* Sends setups to hosts: to another one by the discovery process of this machine (torusd-discover), sealed so that only
 * torusd-setup of that host can read it; to this one by its own torusd-setup. */
#ifndef TORUSD_CLI_SETUP_SOCKET_H
#define TORUSD_CLI_SETUP_SOCKET_H

#include "client/cli/discovering/discovered.h"
#include "daemon/discovery/seal.h"

#define SETUP_SECONDS 420 /* longer than a host's command may run */

/* What the command of a host has printed; texts end with '\0', and setup_reply_free() frees them. */
struct setup_reply {
    uint32_t status; /* exit status of the command */
    char *output;
    char *errors; /* on its standard error */
};

/* A setup of at most DISCOVERY_SETUP_MOST bytes on its way. The first four are set by the caller, who keeps the bytes
 * and the keys. */
struct setup_sending {
    bool apply; /* otherwise the host's command only shows what would change */
    const void *bytes;
    size_t size;
    const struct secrets *secrets; /* cluster keys that the host may have */
    int fd;                        /* readable: setup_continue() does not wait */
    struct host_id host;
    bool own;
    struct reply_keys keys;
};

/* Begins to send a setup to another host, by the discovery process at `socket` (NULL: the default). Returns 0, or -1 with
 * *e: this user may not send setups (ERROR_REFUSED), the host accepts none (ERROR_REFUSED), or is not reachable
 * (ERROR_LINK). */
int setup_begin(struct setup_sending *s, const char *socket, const struct host_id *host,
                struct error *e);

/* Begins to send a setup to this host, by torusd-setup at `socket`, which must be a process of root or of this user.
 * Returns 0, or -1 with *e. */
int setup_begin_own(struct setup_sending *s, const char *socket, struct error *e);

/* Goes on when something has arrived. Returns 1 if the command has run, with *reply; 0 if more is to come; or -1 with *e:
 * also as above, and the host did not answer (ERROR_TIMEOUT). Except with 0, the descriptor is closed. */
int setup_continue(struct setup_sending *s, struct setup_reply *reply, struct error *e);

/* Ends it all before. */
void setup_abandon(struct setup_sending *s);

void setup_reply_free(struct setup_reply *reply);

#endif
