/* The operations of a group: those of enum group_operation, and internal ones. */
#pragma once

#include "daemon/torusd/group/data/group_call.h"

/* Operations that no program calls: a barrier that the group inserts (GROUP_UNPROVEN_MOST), and the last call
 * of all. */
enum { GROUP_PROOF = GROUP_OPERATIONS, GROUP_LEAVE };

/* Returns the name of an operation, such as "alltoall"; also for internal ones. */
const char *group_operation_name(uint32_t operation);

/* Whether a call without waves can be complete at a member while other members have not made it. */
bool group_operation_is_unproven(uint32_t operation);
