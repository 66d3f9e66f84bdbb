/* Memory of torus_memory_new(). */
#pragma once

#include "client/libtorus/groups/group_record.h"

/* Returns the shared memory of the group that contains this address, or NULL. */
const struct shared_memory *group_memory_of(const struct group_session *session, const void *at);
/* Frees all memory of the group. */
void group_memory_free(struct group_session *session);
