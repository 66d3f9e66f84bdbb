/* Descriptors held in reserve, so that an operation that must not fail still gets one when all others are
 * in use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "proto/error.h"

#define RESERVE_MOST 32u

/* Zero-initialise. */
struct reserve {
    unsigned wanted, held;
    int fd[RESERVE_MOST];
};

/* Opens descriptors until `wanted` (at most RESERVE_MOST) are held, or no more can be opened. Call it again
 * after a descriptor has been closed. */
void reserve_fill(struct reserve *r, unsigned wanted);

/* To be called with the errno of a call that could not open a descriptor. If there was none left and one is
 * held, releases it and returns true: the caller should try again. */
bool reserve_release_one(struct reserve *r, int error);

/* Closes all held descriptors. */
void reserve_close(struct reserve *r);

/* Limits how many hosts the packets of a link may cross: by default none, so that a link uses its own cable
 * only. If a route leads over a third host, that host drops the packets, and the dial reports the host. */

#define HOPS_DEFAULT 1u
#define HOPS_MOST 255u

/* Makes a socket that is about to connect keep the ICMP message that makes it fail. */
void hops_keep_errors(int fd, sa_family_t family);
/* To be called when the socket is connected: from now on ICMP messages do not end the connection, as usual
 * with TCP. */
void hops_drop_errors(int fd, sa_family_t family);

/* Whether connecting failed because the packets reached their hop limit at another host. If so, writes the
 * address of that host to `host` (ADDRESS_TEXT_SIZE, address.h), or "" if it is not known. */
bool hops_exceeded(int fd, char *host, size_t size);

/* Limits how much data of a slow link the kernel holds, and how fast the kernel sends it. */

/* The pacing of one connection. Zero-initialise. */
struct pacing {
    bool paced;
    double bytes_per_second; /* payload that the link carries */
    double ahead;            /* bytes written that the link cannot have carried yet */
    uint64_t ahead_since_ms; /* when `ahead` was computed */
};

/* Whether a link of this nominal rate in Mbit/s (0: unknown) must be paced, and frames that a relay waits for
 * must end a packet. */
bool pacing_is_slow(double link_mbit);

/* Sets the nominal rate at which a connected socket sends, in Mbit/s (0: unknown), and computes which part of it is
 * payload. The rate may change later. */
void pacing_set_rate(struct pacing *p, int fd, double link_mbit);

/* Turns pacing on or off before `bytes` bytes are written to this socket. `now_ms` is in milliseconds, on
 * any clock that does not jump. Only for slow links, after pacing_set_rate(). */
void pacing_before_write(struct pacing *p, int fd, size_t bytes, uint64_t now_ms);

/* Most bytes in one write to a slow link: frames that are written cannot be overtaken by more urgent ones. */
#define PACING_WRITE_MOST (32u * 1024u)

/* A listening socket that can accept even when all descriptors are in use. (libuv's function closes
 * connections that it cannot accept, and loops forever if it has no descriptor for that.) */

struct listener {
    uv_poll_t poll;
    uv_timer_t retry;
    int type; /* type of the socket; 0: SOCK_STREAM */
    int fd;
    unsigned handles; /* number of open handles */
    bool closing, no_descriptors;
    struct reserve *reserve;
    /* Sets options of the socket before it is bound, which its connections inherit; may be NULL. Returns 0,
     * or -1 with errno: then the listener is not opened. */
    int (*prepare)(void *context, int fd, sa_family_t family);
    /* A connection, non-blocking; the callee owns it. */
    void (*accepted)(void *context, int fd);
    void (*closed)(void *context);
    void *context;
};

/* Binds a socket to the address, and listens; connections are accepted when the loop runs. *l may be opened
 * again after `closed`. Returns 0, or -1 with errno and nothing left open. */
int listener_open(struct listener *l, uv_loop_t *loop, const struct sockaddr *address,
                  socklen_t length);

/* Accepts nothing for this time; connections wait in the kernel's queue. */
void listener_pause(struct listener *l, uint64_t milliseconds);

/* Closes the listener; `closed` is called when the loop has closed its handles. */
void listener_close(struct listener *l);

/* Sets up the sockets of links. */

struct socket_options {
    const char *congestion; /* TCP congestion control; "" = the system's */
    bool slow;              /* see pacing_is_slow() */
    unsigned hop_limit;     /* 0: HOPS_DEFAULT */
};

/* Sets the options of a socket before it is bound, connects or listens; accepted sockets inherit all of them.
 * Binds the socket to `interface`, unless that is "". Returns 0, or -1 with errno if it cannot be bound to
 * the interface. */
int socket_set_up(const struct socket_options *o, int fd, sa_family_t family,
                  const char *interface);

/* Describes the errno of an attempt to use a socket in words that help. Returns `text`. */
const char *socket_failure(int error, const char *interface, char *text, size_t size);
