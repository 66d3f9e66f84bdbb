/* Runs a copy of trees: request, progress and report. */
#pragma once

#include "client/cli/copying/copy_arguments.h"
#include "client/cli/terminal/command.h"

/* Runs the copy, and prints everything. Returns the exit code: EXIT_FAILED also if a node has failed, or if --verify
 * has found a difference. */
int copy_run(struct cli *cli, enum torus_copy_kind kind, const struct copy_arguments *a);
