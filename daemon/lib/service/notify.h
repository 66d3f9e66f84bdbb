/* Messages to the service manager: the protocol of sd_notify(3), lines in a datagram to the socket that
 * $NOTIFY_SOCKET names.
 *
 * The protocol is documented as stable, and is one sendto(). libsystemd, which has a function for it, would
 * bring several libraries (compression, cryptography) into a process that listens on the network, and make the
 * daemon depend on systemd. Hence these few lines. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "proto/error.h"

struct notify {
    int socket; /* -1: no service manager */
    struct sockaddr_un address;
    socklen_t length;
};

/* Opens the way to the socket at `path`: a path, or a name that begins with '@' (an abstract socket). NULL: there
 * is no service manager, and notify_send() does nothing. Returns 0, or -1 with *e. The caller gives *n to
 * notify_close() in any case. */
int notify_open(struct notify *n, const char *path, struct error *e);
/* Closes the socket. */
void notify_close(struct notify *n);

/* Sends lines such as "READY=1\nSTATUS=ready". Never waits. Returns 0 if the message was sent or there is no
 * service manager; otherwise -1: its queue is full, and the caller may try again later. */
int notify_send(const struct notify *n, const char *lines);

/* Returns after how many microseconds without WATCHDOG=1 the service manager takes this process for hung; 0:
 * never. The arguments are the values of $WATCHDOG_USEC and $WATCHDOG_PID, or NULL. */
uint64_t notify_watchdog(const char *usec, const char *pid);
