/* exchange --trees: files and folders, which are copied by the rules of torusctl copy. */
#pragma once

#include "client/cli/exchanging/exchange_run.h"

/* Runs the exchange, and prints everything. Returns the exit code. */
int exchange_trees(struct cli *cli, const struct exchange_arguments *a);
