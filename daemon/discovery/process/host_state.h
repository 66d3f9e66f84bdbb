/* What a host keeps about itself from one process to the next: its key pair, and whether it was set up. */
#ifndef TORUSD_DISCOVERY_PROCESS_HOST_STATE_H
#define TORUSD_DISCOVERY_PROCESS_HOST_STATE_H

#include "daemon/discovery/discovery.h"

struct host_state {
    const char *folder;      /* NULL: nothing is kept */
    uint8_t seed[SEED_SIZE]; /* of the key pair */
    bool was_set_up;         /* false if the key pair was made just now */
};

/* Reads the state from the folder, which is made if it is missing. A key pair belongs to the machine-id and the network
 * cards of the machine that has made it: where the machine-id differs, or the cards are all others, as on a machine
 * with a copy of the disk, a new pair is made, and the host was never set up. Returns 0 with *s, or -1 with *e: the
 * folder cannot be used, or the file is damaged. */
int host_state_read(struct host_state *s, const char *folder, struct error *e);

/* Looks again whether the host was set up: another process may have forgotten it. */
void host_state_look(struct host_state *s);

/* Remembers that this host was set up, or forgets it. Does nothing without a folder. Returns 0, or -1 with *e. */
int host_state_mark(struct host_state *s, bool set_up, struct error *e);

/* Overwrites the seed. */
void host_state_forget(struct host_state *s);

#endif
