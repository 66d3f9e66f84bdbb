/* What 'torusctl init' shows: the changes of each host, and what became of them. */
#pragma once

#include "client/cli/cluster/deliver.h"
#include "client/cli/terminal/cli.h"

/* Prints the changes of each host as text: its files, with their differences, and warnings. */
void init_report_changes(const struct delivery *list, uint32_t count);

/* Returns how many hosts have changes. */
uint32_t init_report_changing(const struct delivery *list, uint32_t count);

/* Prints the result: a row for each host. `applied`: the setups were applied. `whole`: what is known about the torus
 * now ("" if nothing). Returns EXIT_DONE, or EXIT_FAILED if a host failed. */
int init_report_result(const struct cli *cli, const struct delivery *list, uint32_t count,
                       bool applied, const char *whole);
