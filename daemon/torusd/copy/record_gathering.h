/* Exchanges records between all members (records.h). */
#pragma once

#include "daemon/torusd/copy/agent_record.h"
#include "daemon/torusd/copy/records.h"

#define GATHERING_CALL UINT64_C(1000) /* the name of its calls */

/* Begins to tell this node's record. Returns 0, or -1: the agent has failed. */
int record_gathering_begin(struct agent *a, enum record_kind kind);
/* A call has ended: continues. Returns 1 if all records are in the plan; 0; or -1: the agent has failed. */
int record_gathering_called(struct agent *a, enum record_kind kind);
void record_gathering_end(struct agent *a);
