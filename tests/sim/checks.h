/* Checks of an exchange that has ended. Each function fails the test if its check does not hold. */
#pragma once

#include "daemon/lib/schedule/damage.h"
#include "tests/sim/sim.h"

/* The exchange has succeeded, and the counts of every node are those of its plan, in every round. */
void check_success(struct sim_request *request, const struct spec *spec);

/* Waits until the exchange has ended on every node, and checks that the nodes agree: outputs are in place on all
 * nodes or on none (except dead nodes and nodes in doubt), and all nodes give the same reason for a failure.
 * Returns true if it was committed. */
bool check_agreement(struct sim_request *request, const struct spec *spec);

/* Call this when all nodes and links work again: all doubts end, and the outputs are in place on all nodes or on
 * none. */
void check_doubts_end(struct sim *sim, const char *id);

/* Whether this node may also go down and be left out: the remaining nodes are connected and more than half of
 * all, and each node that is down had a link to one of them. */
bool check_may_die(const struct damage *down, uint32_t rank);

/* A barrier has succeeded, and its result at this node says of every node when it came: `came` has the times by rank.
 * At most `slack` passes between nodes for what the barrier tells. */
void check_arrivals(const struct sim_request *request, const uint64_t *came, uint64_t slack);

/* Checks that an exchange of generated blocks succeeds on the repaired torus. */
void check_next_exchange(struct sim *sim, uint32_t root);
