/* Gives the output its final name. */
#pragma once

#include "daemon/torusd/files/sink/sink_record.h"

/* As sink_ops.commit(). */
int sink_commit(struct sink *base, struct error *e);
