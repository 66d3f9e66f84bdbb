/* The environment variables of the preload. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct settings {
    bool off, torus, statistics, verbose; /* the words of TORUS_MPI */
    const char *table;                    /* TORUS_MPI_TABLE; NULL: none */
    uint32_t timeout_ms;                  /* how long opening the group may take */
    uint32_t late_ms;  /* after which a waiting process prints which nodes it waits for; 0: never */
    const char *wrong; /* name of a variable with an invalid value; NULL: none */
};

/* Reads TORUS_MPI and the variables whose names begin with it. */
struct settings settings_read(void);
/* Stores a text in `out` that is the same in all processes of this program, and differs from other programs that use
 * the torus at the same time: TORUS_MPI_JOB, or an identifier from the launcher. Returns whether there is such a
 * text. */
bool settings_program(char *out, uint32_t size);

/* Messages between the processes of a program by names that the launcher publishes, for the time when they cannot use
 * MPI because some processes may lack this preload. If the launcher does not publish names, no message arrives. Only
 * for MPI_Init, while error handlers are replaced (errors.h), because an unknown name is an error. */

/* A process calls this once, if it decides by itself that the program is not served. Returns whether it is the first
 * process to do so. If the launcher does not publish names, rank 0 counts as the first. */
bool first_of_program(void);
/* If the group was open in a process, all processes have this preload. If the group then cannot be used, the process
 * publishes that it was open. A process in which opening failed, and that does not know whether it succeeded in
 * others, waits for this message: until it is published, until another process calls first_of_program(), or for
 * `most_ms`. first_await_opened() returns whether it was published. The publisher unpublishes it when all processes
 * know. */
void first_publish_opened(void);
bool first_await_opened(uint32_t most_ms);
void first_unpublish_opened(void);
