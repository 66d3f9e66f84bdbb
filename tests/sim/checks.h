/* What must hold when an exchange has ended. Each fails the test if it does not. */
#ifndef TORUSD_TESTS_SIM_CHECKS_H
#define TORUSD_TESTS_SIM_CHECKS_H

#include "daemon/schedule/damage.h"
#include "tests/sim/sim.h"

/* It has succeeded, and every node counted what its plan says, in every round. */
void check_success(struct sim_request *request, const struct spec *spec);

/* Lets it end everywhere, and checks that the nodes agree: outputs in place everywhere or nowhere
 * (those of dead and doubtful nodes apart), failed everywhere with the same words. Returns true if
 * it was committed. */
bool check_agreement(struct sim_request *request, const struct spec *spec);

/* With all nodes and links there again: all doubts end, and the outputs are in place on all nodes
 * or on none. */
void check_doubts_end(struct sim *sim, const char *id);

/* Whether this node, too, may go down, so that the others can do without it: they hold together, are more
 * than half of all, and each that is down had a link to one of them. */
bool check_may_die(const struct damage *down, uint32_t rank);

/* An exchange of generated blocks over the healed torus succeeds. */
void check_next_exchange(struct sim *sim, uint32_t root);

#endif
