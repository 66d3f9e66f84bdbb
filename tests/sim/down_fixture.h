/* Exchanges on a torus with links or nodes that are down. */
#pragma once

#include "daemon/lib/schedule/damage.h"
#include "tests/sim/checks.h"
#include "tests/sim/events.h"

/* A simulator of one of several tori, with all links up. The caller frees it. Seeds divisible by 7 get 4x4. */
struct sim *down_begin(uint64_t seed);

/* The spec of an exchange: with or without files; in one round, in several, or repeated. */
const struct spec *down_any_spec(struct sim *sim);

/* Cuts a random link, even if it is cut already. */
void down_cut(struct sim *sim, struct damage *d);

/* Cuts a link that is up, makes it silent, or, with `mends`, restores one that is not up; never so that the torus is
 * in parts. A restored link still counts as down in *d. */
void down_change(struct sim *sim, struct damage *d, bool mends);

/* Fails the test unless the exchange has succeeded, with any algorithm. */
void down_check_success(struct sim_request *r, const struct spec *spec);

/* Fails the test unless the exchange ends in time and succeeds, with any algorithm. */
void down_must_complete(struct sim_request *r, const struct spec *spec);

/* Whether the error says that the live nodes cannot reach each other. */
bool down_is_in_parts(const struct error *e);

/* For sim_run(): whether no node has a journal record or temporary folder left. */
bool down_no_leftover(struct sim *sim, void *context);
