/* Programs that keep others waiting. */
#ifndef TORUSD_CLI_FIND_PROGRAMS_H
#define TORUSD_CLI_FIND_PROGRAMS_H

#include "client/cli/reporting/finding_list.h"

/* Adds a finding for each program that made its calls late. */
void find_programs(struct finding_list *l);

#endif
