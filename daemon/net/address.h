/* Addresses as text. */
#ifndef TORUSD_NET_ADDRESS_H
#define TORUSD_NET_ADDRESS_H

#include <stddef.h>
#include <sys/socket.h>

#include "proto/error.h"

#define ADDRESS_TEXT_SIZE 64u

/* Parses "10.0.0.1:7411", "[fd00::1]:7411" or a host name with a port. May ask a name server and
 * wait for it: only for the start of a program. Returns 0, or -1 with *e (ERROR_USAGE). */
int address_parse(const char *text, struct sockaddr_storage *address, struct error *e);

/* "10.0.0.1:7411" or "[fd00::1]:7411"; ADDRESS_TEXT_SIZE bytes are enough. */
void address_format(const struct sockaddr *address, char *text, size_t size);

#endif
