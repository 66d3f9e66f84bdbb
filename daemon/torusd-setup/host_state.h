/* What a host keeps about itself from one process to the next: the seed of its keys, and whether it was set up. */
#pragma once

#include "daemon/lib/base/secrets.h"
#include "daemon/lib/discovery/signing.h"
#include "daemon/lib/schedule/torus.h"
#include "daemon/torusd-setup/options.h"

struct host_state {
    const char *folder;
    uint8_t seed[SEED_SIZE]; /* of the host's keys */
    bool was_set_up;         /* false if the seed was made just now */
};

/* Reads the state from the folder, which is made if it is missing. A seed belongs to the machine-id and the network
 * cards of the machine that has made it: where the machine-id differs, or the cards are all others, as on a machine
 * with a copy of the disk, a new one is made, and the host was never set up. Returns 0 with *s, or -1 with *e: the
 * folder cannot be used, or the file is damaged. */
int host_state_read(struct host_state *s, const char *folder, struct error *e);

/* Remembers that this host was set up, or forgets it. Returns 0, or -1 with *e. */
int host_state_mark(struct host_state *s, bool set_up, struct error *e);

/* Overwrites the seed. */
void host_state_forget(struct host_state *s);

/* What torusd-setup reads again at SIGHUP: the cluster keys, and the settings of the host's daemon. */

struct setup_settings {
    struct secrets secrets;
    char dims[TORUS_TEXT_SIZE]; /* as configured; "": not configured */
    bool have_rank;
    uint32_t rank;
    bool failed;          /* something could not be read: try again */
    bool open;            /* this host is new, and accepts a first setup from everybody */
    char why_closed[512]; /* why the host is not new, apart from its state; "": no reason */
};

/* Reads what the options name. A host with a configuration or a key, or with one that cannot be read, is not new, and
 * its state remembers that. `log`: logs the result. */
void settings_read(struct setup_settings *settings, const struct setup_options *options,
                   struct host_state *state, bool log);
