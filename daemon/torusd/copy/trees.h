/* What a node does with its own trees, in a thread: opens them, compares them, puts them in place, closes them. */
#pragma once

#include "daemon/torusd/copy/agent_record.h"

/* Run in a thread. Errors stay at the trees and ends of the plan. */
void copy_trees_open(struct agent *a);
void copy_trees_compare(struct agent *a);
void copy_trees_digest(struct agent *a);
void copy_trees_find_missing(struct agent *a);
void copy_trees_check(struct agent *a);
void copy_trees_finish(struct agent *a);
void copy_trees_close(struct agent *a);

/* Whether a reader or writer is open. */
bool copy_trees_are_open(const struct agent *a);
