/* How long the steps of a schedule took in a run, by its trace. */
#pragma once

#include "client/cli/animation/animation.h"

struct measured_steps {
    char run[64];    /* its id */
    uint32_t count;  /* the schedule's steps */
    double *seconds; /* how long each took, from the end of the one before at the last node */
};

/* Reads a file of 'torusctl exchange --trace'. In a run of several rounds or repetitions, the first one that is recorded
 * completely counts. Returns 0 with *m, which the caller gives to measured_steps_free(); or -1 with *e: it is no trace
 * (ERROR_USAGE); the run was on another torus, with another algorithm, or not in steps (ERROR_REFUSED). */
int measured_steps_read(struct measured_steps *m, const char *path, const struct torus *t,
                        const struct animated *schedule, struct error *e);
void measured_steps_free(struct measured_steps *m);
