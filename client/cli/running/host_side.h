/* 'torusctl run --receive': runs the processes of a program on a host, for a 'torusctl run' at the other end of standard
 * input and output. */
#pragma once

/* Runs what the other side orders, until all processes and all that they have started have ended. If the connection
 * ends, or is silent for RUN_SILENCE_MS, they get SIGTERM, and after the time of grace SIGKILL. If this process is killed,
 * they are killed. Returns the exit code. */
int host_side_run(void);
