/* Groups on a torus of which links are down. */
#ifndef TORUSD_TESTS_SIM_HOLE_FIXTURE_H
#define TORUSD_TESTS_SIM_HOLE_FIXTURE_H

#include "daemon/schedule/damage.h"
#include "tests/sim/group_fixture.h"

#define CALLS_MOST 40u

/* For holes_all_are_told(). */
struct holes_going {
    struct sim_programs *programs;
    uint32_t nodes;
};

/* A simulator on one of several tori, all of which is up, and no damage of it. The caller frees both. */
struct sim *holes_begin(uint64_t seed, struct damage *d);

/* Cuts a link, or mends one that is cut; never so that the torus would be in parts. */
void holes_change(struct sim *sim, struct damage *d, bool mend);

/* Whether from every node all others that differ from it in these dimensions only can be reached by
 * links of these dimensions. */
bool holes_are_connected(const struct damage *d, uint32_t mask);

/* All parts, and anything on them and on the whole. */
uint32_t holes_draw_calls(struct sim *sim, struct sim_call *call);

/* All programs have all their calls completed; else it is a violation. */
void holes_must_succeed(struct sim *sim, struct sim_programs *programs);

/* As all nodes say what the group goes around. */
bool holes_are_said(struct sim *sim, const char *around);

/* For sim_run(): the group is open at all nodes. */
bool holes_group_is_open(struct sim *sim, void *context);

/* For sim_run(): each program has made all calls, or been told that the group has failed. */
bool holes_all_are_told(struct sim *sim, void *context);

#endif
