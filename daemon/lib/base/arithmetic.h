/* The arithmetic of reductions: element by element, in a type of C. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/group_call.h"

/* Sets into[i] = into[i] op from[i] for `count` elements, with an operator that is allowed for the type. AVG is a sum here.
 * Neither array needs to be aligned; `from` may change during the call. Sums and products of integers wrap
 * around. MIN and MAX with a NaN give NaN, and of two equal zeros the second. Every NaN that results has the
 * same bits. */
void reduction_combine(enum reduction_type type, enum reduction_operator operation, void *into,
                       const void *from, size_t count);

/* Makes the result of what reduction_combine() has combined of all `members`: with AVG, divides each element by their
 * number, and rounds to nearest. Other operators change nothing. */
void reduction_finish(enum reduction_type type, enum reduction_operator operation, void *result,
                      size_t count, uint32_t members);
