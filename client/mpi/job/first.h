/* Messages between the processes of a program by names that the launcher publishes, for the time when they cannot use
 * MPI because some processes may lack this preload. If the launcher does not publish names, no message arrives. Only
 * for MPI_Init, while error handlers are replaced (errhandlers.h), because an unknown name is an error. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
