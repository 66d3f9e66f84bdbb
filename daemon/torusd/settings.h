/* The options of torusd and the settings of torusd.ini: a table with one row for each. --help and the man
 * pages are made from it. */
#pragma once

#include "daemon/torusd/config.h"

#define DEFAULT_CONTROL "/run/torusd/control.sock"
#define DEFAULT_STATE "/var/lib/torusd"

/* Sets a value from its text. Returns 0, or -1 with *e. */
typedef int setting_fn(struct config *c, const char *value, struct error *e);

/* When a daemon takes over a setting that has been read again. Coordinates only determine the rank. */
enum setting_when { SETTING_NEVER, SETTING_NOW, SETTING_AT_START };
/* How two values are compared. */
enum setting_kind { SETTING_TEXT, SETTING_VALUE, SETTING_DIMS, SETTING_ROOTS, SETTING_MEMORY };

struct setting {
    const char *option;     /* "state-dir": the option is --state-dir. NULL ends the table */
    const char *name;       /* in section [node] of torusd.ini: "state_dir". NULL: only an option */
    const char *value;      /* the placeholder for the value, "DIR". NULL: the option takes no
                             * value */
    setting_fn *set_option; /* sets the value of the option, if it differs from that of the file */
    /* If it has a name: */
    enum setting_when when;
    enum setting_kind kind;
    setting_fn *set;     /* NULL: the text is stored */
    size_t offset, size; /* in struct config */
    const char *help;    /* lines without a full stop at the end */
};

extern const struct setting config_settings[];

#define PORT_RATE_SUFFIX ".link_mbit" /* of a setting in section [ports]: "+0.link_mbit" */

/* Whether a name is meant as that of a port: it begins like "+0", "-1" or "0:3". */
bool config_names_port(const char *name);

/* Sets one value by its name in the INI file ("dims", "data_roots", ...; "+0" and "+0.link_mbit" for a port). Returns
 * 0, or -1 with *e. */
int config_set(struct config *c, const char *name, const char *value, struct error *e);
