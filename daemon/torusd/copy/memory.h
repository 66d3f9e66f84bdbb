/* Memory for the calls of a group. */
#pragma once

#include "daemon/torusd/group/operations/operations.h"

/* Returns memory with one reference, which the caller gives back with program_memory_unref(); NULL: there is none. */
struct program_memory *copy_memory_new(uint64_t size);
