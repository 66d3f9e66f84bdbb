/* The command line of torusd. */
#pragma once

#include "daemon/torusd/config.h"

/* Reads the file of --config and then the other options into *config, which config_init() has filled. Prints nothing.
 * Returns 0, or -1 with *e. For a second reading of a command line that options_read() has accepted. */
int options_read_again(int argc, char **argv, struct config *config, struct error *e);

/* Reads the file of --config and then the other options into *config, which config_init() has filled. Returns
 * 0 if the daemon is to start; or -1 with the exit code of the process, after it has printed the requested
 * text, or an error. */
int options_read(int argc, char **argv, struct config *config, int *exit_code);
