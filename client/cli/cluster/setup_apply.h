/* Carries out a setup on this host, completely or not at all. */
#ifndef TORUSD_CLI_SETUP_APPLY_H
#define TORUSD_CLI_SETUP_APPLY_H

#include "client/cli/cluster/setup_plan.h"

/* Waits until no other setup is applied on this host: one that was asked for before may still run, although whoever asked
 * for it is gone. The lock ends with the process. Returns 0, or -1 with *e: another one runs for too long. */
int setup_lock(const char *root, struct error *e);

/* Checks on this host what a setup would do: whether torusd accepts its configuration here, with its data roots and
 * groups (with a root folder: those of the image), and whether the files can be written. Changes nothing. Returns 0, or
 * -1 with *e. */
int setup_check(const struct setup_plan *p, struct error *e);

/* Writes the files that differ, then enables, starts, restarts or reloads the units that read them; if only keys differ,
 * torusd is reloaded and keeps its links. Checks torusd.ini with 'torusd --check' before. If anything fails, the former
 * files are restored, and the units that ran before run with them again. With a root folder, or on a host without
 * systemd, only the files are written. The caller has the lock. Returns 0, or -1 with *e. */
int setup_apply(const struct setup_plan *p, struct error *e);

#endif
