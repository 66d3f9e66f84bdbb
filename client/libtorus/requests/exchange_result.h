/* Converts the daemon's reply to the result of an exchange or barrier. */
#pragma once

#include <torus/torus.h>

#include "proto/control.pb-c.h"

/* A convert_fn: stores a struct torus_result * at `result`, a struct torus_result **, unless `result` is NULL. The
 * user of the library frees it. Takes ownership of `reply`, also on failure. Returns 0, or -1 with *e: _PROTOCOL if
 * the reply contradicts itself, or _MEMORY. */
int result_from(Control__Reply *reply, void *result, struct torus_error *e);
