/* Converts replies to the public structs. Texts and lists of texts stay in the unpacked reply, which the result owns;
 * only the public structs are allocated. */
#pragma once

#include <torus/torus.h>

#include "client/libtorus/requests/reply_parts.h"
#include "proto/control.pb-c.h"

/* Each function is a convert_fn for the kind of reply in its name. It stores the result at `result` (a struct
 * torus_status ** and so on); the user of the library frees it. It takes ownership of `reply`, also on failure.
 * Returns 0, or -1 with *e: _PROTOCOL if the reply contradicts itself, or _MEMORY. */
int status_from(Control__Reply *reply, void *result, struct torus_error *e);
int links_from(Control__Reply *reply, void *result, struct torus_error *e);
int candidates_from(Control__Reply *reply, void *result, struct torus_error *e);
/* Here `result` may be NULL. */
int calibration_from(Control__Reply *reply, void *result, struct torus_error *e);
