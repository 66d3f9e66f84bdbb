/* A node's trace, from its answer to a survey. */
#ifndef TORUSD_CLIENT_TRACE_RESULT_H
#define TORUSD_CLIENT_TRACE_RESULT_H

#include <torus/survey.h>

#include "proto/control.pb-c.h"

/* Checks that all arrays have the lengths that belong together. Returns 0 with *out, which refers to *t, or -1 with *e.
 * Makes the texts of *t printable. */
int trace_from(Control__Trace *t, struct torus_trace *out, struct torus_error *e);

#endif
