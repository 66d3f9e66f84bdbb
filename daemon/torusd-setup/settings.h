/* What torusd-setup reads again at SIGHUP: the cluster keys, and the settings of the host's daemon. */
#pragma once

#include "daemon/lib/base/secrets.h"
#include "daemon/lib/schedule/torus.h"
#include "daemon/torusd-setup/host_state.h"
#include "daemon/torusd-setup/options.h"

struct setup_settings {
    struct secrets secrets;
    char dims[TORUS_TEXT_SIZE]; /* as configured; "": not configured */
    bool have_rank;
    uint32_t rank;
    bool failed;          /* something could not be read: try again */
    bool open;            /* this host is new, and accepts a first setup from everybody */
    char why_closed[512]; /* what says so at this moment, beside the state; "": nothing */
};

/* Reads what the options name. A host with a configuration or a key, or with one that cannot be read, is not new, and
 * its state remembers that. `log`: logs the result. */
void settings_read(struct setup_settings *settings, const struct setup_options *options,
                   struct host_state *state, bool log);
