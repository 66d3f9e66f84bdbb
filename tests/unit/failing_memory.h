/* Allocations that fail: link with
 *
 *     -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=link_received
 *     -Wl,--wrap=link_next -Wl,--wrap=decoder_feed
 *
 * memory_fails() counts only what the daemon's code allocates inside the last three calls, and
 * between memory_counts_here(true) and (false); not what the test itself does elsewhere. */
#ifndef TORUSD_TESTS_UNIT_FAILING_MEMORY_H
#define TORUSD_TESTS_UNIT_FAILING_MEMORY_H

#include <stdbool.h>

/* The allocation after the next `after` ones fails, and no other. */
void memory_fails(unsigned after);
/* The same with all allocations that follow. */
void memory_fails_everywhere(unsigned after);
/* No more failures. Returns whether there has been one. */
bool memory_failed(void);
/* Calls nest. */
void memory_counts_here(bool here);

#endif
