/* Programs that keep others waiting. */
#pragma once

#include "client/cli/reporting/finding_list.h"

/* Adds a finding for each program that made its calls late. */
void find_programs(struct finding_list *l);
