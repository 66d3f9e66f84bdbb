/* The options of torusd --discover. */
#ifndef TORUSD_DISCOVER_SETTINGS_H
#define TORUSD_DISCOVER_SETTINGS_H

#include "daemon/config.h"

#define DEFAULT_DISCOVER_SOCKET "/run/torusd/discover.sock"

/* Functions for the table of settings (settings.h). */
int discover_set_mode(struct config *c, const char *value, struct error *e);
int discover_set_config(struct config *c, const char *value, struct error *e);
int discover_set_interfaces(struct config *c, const char *value, struct error *e);
int discover_set_name(struct config *c, const char *value, struct error *e);
int discover_set_socket(struct config *c, const char *value, struct error *e);
int discover_set_command(struct config *c, const char *value, struct error *e);
int discover_set_links(struct config *c, const char *value, struct error *e);

/* Checks that the options of discovery are complete, and given only with --discover. Returns 0, or -1 with
 * *e. */
int discover_finish(struct config *c, struct error *e);

#endif
