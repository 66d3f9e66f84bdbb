/* What all conversions of replies need. */
#pragma once

#include <torus/torus.h>

/* Allocates zeroed memory for `count` elements. Returns NULL only if memory is short, also if `count` is 0. */
void *array_new(size_t count, size_t size);

/* Removes control characters from the text. Returns it. */
const char *clean_text(char *text);

/* Sets *e to a _PROTOCOL error about the daemon's reply. `what` is a clause: "it has no id". Returns -1. */
int invalid_reply(struct torus_error *e, const char *what);

/* Returns whether a number is finite and not negative. */
bool is_measurement(double value);
