/* torusctl without main(), so that tests can link it. */
#ifndef TORUSD_CLI_PROGRAM_H
#define TORUSD_CLI_PROGRAM_H

/* Runs torusctl with these arguments. Returns the exit code. */
int program_run(int argc, char **argv);

#endif
