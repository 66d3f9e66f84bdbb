/* Chooses the routes of an attempt: for algorithm and mode "auto" the pair with the shortest predicted time
 * (planning/choose.h). Predictions use the latest measured costs, or default costs before any measurement. The root
 * chooses; the other nodes take its choice from Prepare or, if the sizes of blocks must be known first, from Layout. */
#pragma once

#include "daemon/torusd/planning/choose.h"
#include "daemon/torusd/planning/link_rates.h"

struct attempt;
struct damage;
struct exchanges;

/* Works like choose_from(), for the torus and the costs of this node and, if all links are up, the rates that plans use
 * (plan_rates.h); bursts count only as far as they were measured.
 * Sets *links, unless it is NULL, to these rates. 0: call again after exchanges_setup.planned. */
int choose_candidates(struct exchanges *exchanges, const struct block_sizes *sizes, enum mode mode,
                      struct candidate *list, unsigned *count, struct link_rates *links,
                      struct error *e);

/* Learns from the times of a finished session of several exchanges, at its root (choose_learn_times()). */
void choose_learn(const struct attempt *x);

/* Decides at the root whether an attempt uses the rates in *d. Clears them if not: if "auto" stands for an algorithm
 * that treats all links alike, and that is still predicted to be faster at these rates. Returns 1; 0 while schedules
 * are being counted; or -1 with *e. */
int choose_whether_rated(const struct attempt *x, struct damage *d, struct error *e);

/* Sets the algorithm and mode of an attempt. Returns 1; 0 while schedules are being counted; or -1 with *e. */
int choose_for(struct attempt *x, struct error *e);
