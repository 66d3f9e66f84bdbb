/* A node's last trace (daemon/lib/trace) as its answer to a survey. */
#pragma once

#include "daemon/lib/trace/trace.h"
#include "daemon/torusd/router/router.h"
#include "proto/control.pb-c.h"

/* Makes the message, of at most about `most` bytes: intervals are joined until it fits. The caller gives it to
 * trace_answer_free(). Returns NULL if memory is short. */
Control__Trace *trace_answer_make(const struct trace *t, struct router *router, size_t most);
void trace_answer_free(Control__Trace *m); /* NULL does nothing */
