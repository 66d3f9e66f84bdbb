/* The environment variables of the preload. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct settings {
    bool off, statistics, verbose;
    uint32_t timeout_ms; /* how long opening the group may take */
    uint32_t late_ms;  /* after which a waiting process prints which nodes it waits for; 0: never */
    const char *wrong; /* name of a variable with an invalid value; NULL: none */
};

/* Reads TORUS_MPI, TORUS_MPI_TIMEOUT and TORUS_MPI_LATE. */
struct settings settings_read(void);

/* Stores a text in `out` that is the same in all processes of this program, and differs from other programs that use
 * the torus at the same time: TORUS_MPI_JOB, or an identifier from the launcher. Returns whether there is such a
 * text. */
bool settings_program(char *out, uint32_t size);
