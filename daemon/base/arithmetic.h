/* The arithmetic of reductions: element by element, in a type of C. */
#ifndef TORUSD_BASE_ARITHMETIC_H
#define TORUSD_BASE_ARITHMETIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/group_call.h"

/* Bytes of an element; 0 for a value that is not a type. */
uint32_t reduction_size(uint32_t type);

/* Whether the operator is one, and is defined for the type. */
bool reduction_allowed(uint32_t type, uint32_t operation);

/* into[i] = into[i] op from[i] for `count` elements. Neither needs to be aligned; `from` may change
 * meanwhile. The pair must be allowed. Sums and products of integers wrap around; MIN and MAX with a
 * NaN give NaN, of two equal zeros the second. Every NaN that comes out has the same bits. */
void reduction_combine(enum reduction_type type, enum reduction_operator operation, void *into,
                       const void *from, size_t count);

#endif
