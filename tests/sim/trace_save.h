/* Traces of simulated runs as files: as 'torusctl exchange --trace' writes them, for viewers and 'torusctl report'. */
#pragma once

#include <jansson.h>

#include "proto/error.h"
#include "tests/sim/sim.h"

/* How long links must be up until the nodes know how far their clocks differ. */
#define SIM_CLOCKS_KNOWN (10 * SECONDS)

/* Writes the last trace of each node that is alive. `run` is what is known about the run, or NULL; borrowed. Returns 0,
 * or -1 with *e: node 0 has no trace, or the file cannot be written. */
int sim_trace_save(struct sim *sim, const char *path, json_t *run, struct error *e);
