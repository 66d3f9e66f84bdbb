/* Channels: connections that are carried by the stream. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CHANNELS 64u
#define WINDOW 65536u /* bytes in transit on a channel, in each direction */

/*
 * free --OPEN--> open --CLOSE said or heard--> half closed --the other CLOSE--> free
 *
 * fd is -1 once this side has sent CLOSE. Nothing follows a CLOSE in its direction.
 */
struct channel {
    bool used;
    bool waiting; /* the daemon has no room for the connection yet; fd is -1 */
    bool said_close;
    bool heard_close;
    bool said_end;  /* the local side has sent everything */
    bool heard_end; /* nothing will be added to `pending` */
    bool deaf;      /* bytes written to fd are no longer read */
    bool shut;      /* the end has been passed on to fd */
    int fd;
    pid_t pid;       /* the shell's, while it runs */
    uint32_t credit; /* bytes that may still be sent */
    uint32_t begin, pending;
    uint8_t *ring; /* heard, and not yet written to fd */
};

/* Call this before any other function. */
void channels_init(void);

/* number < CHANNELS */
struct channel *channel_at(unsigned number);
unsigned channel_number(const struct channel *c);

/* An unused channel; NULL if there is none. */
struct channel *channel_free(void);

/* Starts to use a channel for connection fd, which it then owns. fd is -1 if there is no connection yet. */
void channel_begin(struct channel *c, int fd);

/* Closes the local side and sends CLOSE. The channel is free once the other side has sent CLOSE, too. */
void channel_close(struct channel *c);

/* Call this after a channel's state has changed: it passes on an end, or closes the channel. */
void channel_settle(struct channel *c);

/* Gives a waiting channel its connection, which it then owns. If fd is -1, the channel is closed. */
void channel_connected(struct channel *c, int fd);

/* Passes data to the local side. Dies if the other side has sent more than allowed. */
void channel_deliver(struct channel *c, const uint8_t *data, uint32_t n);

/* What to poll for on the local side. poll() always reports a hang-up, so fd is -1 where it would be reported
 * again and again. */
struct pollfd channel_wanted(const struct channel *c);

/* These events have occurred on its local side. */
void channel_ready(struct channel *c, short events);

/* The process of this shell has ended. */
void channels_forget_shell(pid_t pid);
