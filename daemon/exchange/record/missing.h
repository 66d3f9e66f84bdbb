/* Which nodes a barrier or group waits for that not all have entered. */
#ifndef TORUSD_EXCHANGE_RECORD_MISSING_H
#define TORUSD_EXCHANGE_RECORD_MISSING_H

#include <stddef.h>
#include <stdint.h>

struct job;

/* Returns how many they are, and their ranks ("3, 7", as many as fit into `size`, 32 or more, bytes), as far as they
 * are in branches below this node that have not been heard of as a whole. Node 0 has all below it; another node that
 * has not heard of node 0 names it alone. */
uint32_t exchange_missing(const struct job *j, char *list, size_t size);

#endif
