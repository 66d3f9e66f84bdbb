/* The arithmetic of reductions: element by element, in a type of C. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/group_call.h"

/* Whether the operator exists, and is defined for the type. */
bool reduction_allowed(uint32_t type, uint32_t operation);

/* Sets into[i] = into[i] op from[i] for `count` elements, with an operator that is allowed for the type.
 * Neither array needs to be aligned; `from` may change during the call. Sums and products of integers wrap
 * around. MIN and MAX with a NaN give NaN, and of two equal zeros the second. Every NaN that results has the
 * same bits. */
void reduction_combine(enum reduction_type type, enum reduction_operator operation, void *into,
                       const void *from, size_t count);
