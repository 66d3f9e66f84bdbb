/* The environment variables of the preload. */
#ifndef TORUSD_MPI_SETTINGS_H
#define TORUSD_MPI_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct settings {
    bool off, statistics, verbose;
    uint32_t timeout_ms; /* how long the processes of a program look for each other */
    uint32_t late_ms;    /* after which a waiting process says which nodes it waits for; 0: never */
    const char *wrong;   /* the name of a variable with an invalid value; NULL: none */
};

/* Reads TORUS_MPI, TORUS_MPI_TIMEOUT and TORUS_MPI_LATE. */
struct settings settings_read(void);

/* Writes a text that distinguishes this program from others that run on the same torus at the
 * same time, and is the same in all its processes: TORUS_MPI_JOB, or what its launcher is known
 * to provide. Returns whether there is such a text. */
bool settings_program(char *out, uint32_t size);

#endif
