/* torusctl as a whole, but for main(), so that tests can link it. */
#ifndef TORUSD_CLI_PROGRAM_H
#define TORUSD_CLI_PROGRAM_H

/* Returns the exit code. */
int program_run(int argc, char **argv);

#endif
