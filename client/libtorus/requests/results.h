/* Converts replies to the public structs. Texts and lists of texts stay in the unpacked reply, which the result owns;
 * only the public structs are allocated. */
#ifndef TORUSD_CLIENT_RESULTS_H
#define TORUSD_CLIENT_RESULTS_H

#include <torus/torus.h>

#include "proto/control.pb-c.h"

/* Each function is a convert_fn for the kind of reply in its name. It stores the result at `result` (a struct
 * torus_status ** and so on); the user of the library frees it. It takes ownership of `reply`, also on failure.
 * Returns 0, or -1 with *e: _PROTOCOL if the reply contradicts itself, or _MEMORY. */
int status_from(Control__Reply *reply, void *result, struct torus_error *e);
int links_from(Control__Reply *reply, void *result, struct torus_error *e);
int candidates_from(Control__Reply *reply, void *result, struct torus_error *e);
/* Here `result` may be NULL. */
int calibration_from(Control__Reply *reply, void *result, struct torus_error *e);

/* Allocates zeroed memory for `count` elements. Returns NULL only if memory is short, also if `count` is 0. */
void *array_new(size_t count, size_t size);

/* Removes control characters from the text. Returns it. */
const char *clean_text(char *text);

/* Sets *e to a _PROTOCOL error about the daemon's reply. `what` is a clause: "it has no id". Returns -1. */
int invalid_reply(struct torus_error *e, const char *what);

/* Returns whether a number is finite and not negative. */
bool is_measurement(double value);

#endif
