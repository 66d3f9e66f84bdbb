/* A run beside its plan: what its algorithm costs on links without a fault, beside the bound and other algorithms. */
#pragma once

#include <jansson.h>

#include "daemon/lib/schedule/algorithm.h"

struct plan_check {
    double seconds;       /* what the run took */
    double bound_seconds; /* what no algorithm that uses all ports can beat; 0: not known */
    const char *algorithm;
    double blocks, bound_blocks; /* on the busiest channel, one after the other; 0: not known */
    double plan_seconds;         /* of the blocks, at the rate of the links; 0: not known */
    const char *
        better; /* an algorithm that carries the least blocks; NULL: none carries fewer, or not known */
    double better_blocks, better_seconds;
};

/* Compares a run, as a trace file describes it (member "run"; NULL: nothing is known of it), with its plan. A run that
 * avoided links or left out nodes has another plan, and is not compared. */
void plan_check_make(const json_t *run, const struct torus *t, struct plan_check *c);

/* Whether the algorithm, not the torus, is why the run took much longer than the bound. */
bool plan_check_blames_algorithm(const struct plan_check *c);
