/* Allocations that fail: link with
 *
 *     -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=link_received
 *     -Wl,--wrap=link_next -Wl,--wrap=decoder_feed
 *
 * memory_fails() counts only allocations of the daemon's code inside of the last three functions, and between
 * memory_counts_here(true) and (false); not the test's own allocations. */
#pragma once

#include <stdbool.h>

/* Makes the allocation after the next `after` ones fail, and no other. */
void memory_fails(unsigned after);
/* Makes all later allocations fail, too. */
void memory_fails_everywhere(unsigned after);
/* Ends failures. Returns whether an allocation has failed. */
bool memory_failed(void);
/* Calls nest. */
void memory_counts_here(bool here);
