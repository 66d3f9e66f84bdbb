/* Exchanges on a torus of which links or nodes are down. */
#ifndef TORUSD_TESTS_SIM_DOWN_FIXTURE_H
#define TORUSD_TESTS_SIM_DOWN_FIXTURE_H

#include "daemon/schedule/damage.h"
#include "tests/sim/checks.h"
#include "tests/sim/events.h"

/* The seeds that a test plays: what ctest runs, unless the arguments of the program name others. */
extern uint64_t down_first_seed, down_seeds;

/* Reads [FIRST_SEED COUNT]. */
void down_read_seeds(int argc, char **argv);

/* Calls a test with each of the seeds. */
void down_with_seeds(void (*test)(uint64_t seed));

/* A simulator on one of several tori; all links are up. The caller frees it. Seeds that 7 divides get 4x4. */
struct sim *down_begin(uint64_t seed);

/* What an exchange may be asked for: with and without files; in one round, in several, or repeated. */
const struct spec *down_any_spec(struct sim *sim);

/* Cuts any link that there is, even if it is cut already. */
void down_cut(struct sim *sim, struct damage *d);

/* Cuts a link that is up, or makes it silent, or, with `mends`, brings back one that is not; never so that the torus
 * is in parts. A link that was brought back still counts as down in *d. */
void down_change(struct sim *sim, struct damage *d, bool mends);

/* The exchange has succeeded, with whatever algorithm; else the test fails. */
void down_check_success(struct sim_request *r, const struct spec *spec);

/* The exchange ends in time and succeeds, with whatever algorithm; else the test fails. */
void down_must_complete(struct sim_request *r, const struct spec *spec);

/* Whether the error says that the nodes that live do not reach each other. */
bool down_is_in_parts(const struct error *e);

/* For sim_run(): no node has a journal record or temporary folder left. */
bool down_no_leftover(struct sim *sim, void *context);

#endif
