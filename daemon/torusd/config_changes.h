/* What differs between the settings of a running daemon and those that have been read again. */
#pragma once

#include "daemon/torusd/config.h"

#define CONFIG_CHANGES_SIZE 512u

/* Lists the names of settings that differ ("log_level, data_roots"): those that config_take_changes() or the caller
 * can change while the daemon runs, and the others. `roots` are the data roots in use. */
void config_changes(const struct config *now, const struct roots *roots, const struct config *fresh,
                    char changed[CONFIG_CHANGES_SIZE], char others[CONFIG_CHANGES_SIZE]);

/* Copies the settings that can change while the daemon runs, except the data roots. */
void config_take_changes(struct config *now, const struct config *fresh);

/* Whether a setting or port of this name is compared. */
bool config_compares(const char *name);
