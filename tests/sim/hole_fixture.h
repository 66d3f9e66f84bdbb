/* Groups on a torus with links that are down. */
#pragma once

#include "daemon/lib/schedule/damage.h"
#include "tests/sim/group_fixture.h"

#define CALLS_MOST 40u

/* For holes_all_are_told(). */
struct holes_going {
    struct sim_programs *programs;
    uint32_t nodes;
};

/* A simulator of one of several tori, with all links up, and an empty set of links that are down. The caller frees
 * both. */
struct sim *holes_begin(uint64_t seed, struct damage *d);

/* Cuts a link, or restores one that is cut; never so that the torus is in parts. */
void holes_change(struct sim *sim, struct damage *d, bool mend);

/* Whether every node can reach all nodes that differ from it only in these dimensions, over links of these
 * dimensions. */
bool holes_are_connected(const struct damage *d, uint32_t mask);

/* All parts, and random operations on them and on the whole group. */
uint32_t holes_draw_calls(struct sim *sim, struct sim_call *call);

/* It is a violation unless all calls of all programs are complete. */
void holes_must_succeed(struct sim *sim, struct sim_programs *programs);

/* Whether all nodes report that the group avoids `around`. */
bool holes_are_said(struct sim *sim, const char *around);

/* For sim_run(): whether the group is open at all nodes. */
bool holes_group_is_open(struct sim *sim, void *context);

/* For sim_run(): whether each program has made all calls, or been told that the group has failed. */
bool holes_all_are_told(struct sim *sim, void *context);
