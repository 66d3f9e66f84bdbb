/* The operations that a group carries out: those of enum group_operation, and its own. */
#ifndef TORUSD_GROUP_DATA_OPERATION_H
#define TORUSD_GROUP_DATA_OPERATION_H

#include "daemon/group/data/group_call.h"

/* What no program calls: a barrier that is put in (GROUP_UNPROVEN_MOST), and the last call of all. */
enum { GROUP_PROOF = GROUP_OPERATIONS, GROUP_LEAVE };

/* "alltoall", of what is called and what is put in. */
const char *group_operation_name(uint32_t operation);

/* Whether a call without waves can be complete at a member while others have not made it. */
bool group_operation_is_unproven(uint32_t operation);

#endif
