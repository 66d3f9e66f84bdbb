/* torusctl links --all */
#pragma once

#include "client/cli/terminal/cli.h"

/* Prints the links of all nodes. The client must be connected. Returns the exit code. */
int links_all(struct cli *cli);

struct all_nodes;
/* The links of all nodes in JSON; NULL if memory is short. */
json_t *links_all_value(const struct all_nodes *c);
