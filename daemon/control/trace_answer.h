/* A node's last trace (daemon/trace) as its answer to a survey. */
#ifndef TORUSD_CONTROL_TRACE_ANSWER_H
#define TORUSD_CONTROL_TRACE_ANSWER_H

#include "daemon/router/router.h"
#include "daemon/trace/trace.h"
#include "proto/control.pb-c.h"

/* Makes the message, of at most about `most` bytes: intervals are joined until it fits. The caller gives it to
 * trace_answer_free(). Returns NULL if memory is short. */
Control__Trace *trace_answer_make(const struct trace *t, struct router *router, size_t most);
void trace_answer_free(Control__Trace *m); /* NULL does nothing */

#endif
