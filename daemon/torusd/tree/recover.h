/* What is to be done when the daemon starts, for copies that its end has interrupted. */
#pragma once

#include "daemon/torusd/tree/tree_files.h"

#define RECOVER_AGE                                                                                \
    (24 * 3600) /* seconds after which what an interrupted copy has left is removed */

/* Puts copies in place that are complete, and removes what copies of more than a day ago have left. Logs what it does, and
 * what fails: that stays listed for the next start. Blocks: to be called in a job. */
void tree_files_recover(struct tree_files *files);
