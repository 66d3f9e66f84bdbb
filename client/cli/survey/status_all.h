/* torusctl status --all */
#pragma once

#include "client/cli/terminal/cli.h"

/* Prints the state of all nodes, and what runs on them. The client must be connected. Returns the exit code. */
int status_all(struct cli *cli);

struct all_nodes;
/* The same in JSON; NULL if memory is short. */
json_t *status_all_value(const struct all_nodes *c);
