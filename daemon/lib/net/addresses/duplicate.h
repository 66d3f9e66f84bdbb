/* Finds addresses that the kernel does not use, because another machine on the cable has the same address. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether duplicate address detection (IPv6) has failed for an address of this interface. If so, writes
 * that address to `text`: "fe80::b". */
bool duplicate_address(unsigned index, char *text, size_t size);
