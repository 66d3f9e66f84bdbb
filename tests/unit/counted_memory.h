/* Counts memory, or lets it fail: link with
 *
 *     -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=reallocarray -Wl,--wrap=free
 *
 * What libraries outside of the project allocate does not count. */
#ifndef TORUSD_TESTS_UNIT_COUNTED_MEMORY_H
#define TORUSD_TESTS_UNIT_COUNTED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Begins to count at 0. */
void memory_count(void);
/* The most bytes that were allocated at the same time since then. */
size_t memory_peak(void);

/* The allocation after the next `after` ones fails, and no other. */
void memory_fail(unsigned after);
/* No more failures. Returns whether there has been one. */
bool memory_has_failed(void);

#endif
