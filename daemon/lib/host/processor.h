/* The processor time of this thread. */
#pragma once

#include <stdint.h>

/* Opens the kernel's record of the calling thread. Returns a descriptor, or -1 if the kernel has none. */
int processor_open(void);
void processor_close(int file); /* -1 does nothing */

/* Sets the nanoseconds for which the thread has run, and for which it could have run and no processor was free (0 if that
 * is not known). */
void processor_read(int file, uint64_t *used, uint64_t *delayed);
