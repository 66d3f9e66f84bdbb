/* Counts memory: link with
 *
 *     -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=reallocarray -Wl,--wrap=free
 *
 * What libraries outside of the project allocate is not counted. */
#ifndef TORUSD_TESTS_UNIT_COUNTED_MEMORY_H
#define TORUSD_TESTS_UNIT_COUNTED_MEMORY_H

#include <stddef.h>

/* Begins to count at 0. */
void memory_count(void);
/* The most bytes that were allocated at the same time since then. */
size_t memory_peak(void);

#endif
