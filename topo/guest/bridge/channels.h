/* Channels: connections that are carried by the stream. */
#ifndef TORUSD_TOPO_GUEST_BRIDGE_CHANNELS_H
#define TORUSD_TOPO_GUEST_BRIDGE_CHANNELS_H

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
    bool said_end;  /* the local reader has come to its end */
    bool heard_end; /* nothing will be added to `pending` */
    bool deaf;      /* nobody reads what is written to fd */
    bool shut;      /* the end has been passed on to fd */
    int fd;
    pid_t pid;       /* the shell's, while it runs */
    uint32_t credit; /* bytes that may still be sent */
    uint32_t begin, pending;
    uint8_t *ring; /* heard, and not yet written to fd */
};

/* Before anything else. */
void channels_init(void);

/* number < CHANNELS */
struct channel *channel_at(unsigned number);
unsigned channel_number(const struct channel *c);

/* One that is not used; NULL if there is none. */
struct channel *channel_free(void);

/* Uses it for a connection, which it owns from now on; fd -1: there is none yet. */
void channel_begin(struct channel *c, int fd);

/* Closes the local side and says so; the number is free again when the other side has done both. */
void channel_close(struct channel *c);

/* Does what follows from its state: passes on an end, or closes it. */
void channel_settle(struct channel *c);

/* Gives a channel that waits its connection, which it owns from now on; fd -1: there will be none. */
void channel_connected(struct channel *c, int fd);

/* Data for its local side. Dies if there is more than allowed. */
void channel_deliver(struct channel *c, const uint8_t *data, uint32_t n);

/* What to wait for on its local side; its hang-up is always told, so nothing is waited for where that
 * would be told again and again. */
struct pollfd channel_wanted(const struct channel *c);

/* These events have occurred on its local side. */
void channel_ready(struct channel *c, short events);

/* The process of this shell has ended. */
void channels_forget_shell(pid_t pid);

#endif
