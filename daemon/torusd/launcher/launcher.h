/* What a launcher of parallel programs tells a process by variables: its rank, how many processes there are, and the
 * job. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/error.h"

#define LAUNCHER_JOB_SIZE 33u
#define LAUNCHER_RANK_MOST 0x00ffffffu

struct launcher {
    const char
        *rank_variable; /* "SLURM_PROCID"; NULL: only TORUS_JOB is set, and there is no rank */
    const char *size_variable; /* NULL: this launcher does not say the size */
    uint32_t rank;
    bool has_size;
    uint32_t size;               /* number of processes, if has_size */
    uint32_t local_rank;         /* among the processes of this host; 0 if it is not known */
    char job[LAUNCHER_JOB_SIZE]; /* letters, digits and . _ -; never empty */
};

/* Reads the environment. Returns 0 with *l, whose texts are constant; or -1 with *e (ERROR_USAGE): there are no
 * variables of a launcher, and the error names those it looked for; or a value is no number. */
int launcher_find(struct launcher *l, struct error *e);
