/* A node's trace, from its answer to a survey. */
#pragma once

#include <torus/survey.h>

#include "proto/control.pb-c.h"

/* Checks that all arrays have the lengths that belong together. Returns 0 with *out, which refers to *t, or -1 with *e.
 * Makes the texts of *t printable. */
int trace_from(Control__Trace *t, struct torus_trace *out, struct torus_error *e);
