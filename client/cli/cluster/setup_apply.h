/* Carries out a setup on this host, completely or not at all. */
#pragma once

#include "client/cli/cluster/setup_plan.h"

/* Waits until no other setup is being applied on this host. One may still be running whose sender has gone. The process
 * holds the lock until it ends. Returns 0, or -1 with *e if another setup takes too long. */
int setup_lock(const char *root, struct error *e);

/* Checks whether a setup is possible on this host, and changes nothing: the files can be written, and torusd, as its
 * own user, accepts the configuration with its data roots and groups. A data root that the host has already, and in
 * which torusd cannot write, refuses no other change: it gets a sentence in `warnings`, an array that the caller keeps.
 * With a root folder, data roots and groups are those of the image, and its users are not checked. Returns 0, or -1 with
 * *e. */
int setup_check(const struct setup_plan *p, json_t *warnings, struct error *e);

/* Writes the files that differ, then enables, starts, restarts or reloads the units that read them; if only keys
 * differ, torusd is reloaded and keeps its links. Checks first, as setup_check() does. If anything fails,
 * the former files are restored, and the units that ran before run with them again. With a root folder, or on a host
 * without systemd, only the files are written. The caller has the lock. Returns 0, or -1 with *e. */
int setup_apply(const struct setup_plan *p, json_t *warnings, struct error *e);
