/* Counts memory, or lets it fail: link with
 *
 *     -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=reallocarray -Wl,--wrap=free
 *
 * Allocations of libraries outside of the project do not count. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Starts to count at 0. */
void memory_count(void);
/* The most bytes that were allocated at the same time since the start. */
size_t memory_peak(void);

/* Makes the allocation after the next `after` ones fail, and no other. */
void memory_fail(unsigned after);
/* Ends failures. Returns whether an allocation has failed. */
bool memory_has_failed(void);
