/* Looks up the addresses of a host by its name without blocking. Each lookup has its own thread, because a
 * name server that does not answer can block the thread for half a minute. The loop, the threads that read
 * and write files, and the end of the program must not wait for that. */
#pragma once

#include <sys/socket.h>
#include <uv.h>

#define LOOKUP_MOST 8u

struct lookup;

struct lookup_user {
    /* Called once, at the end, with the addresses (without ports) in the order in which they should be tried;
     * or with count 0 and the reason. All arguments are borrowed. */
    void (*done)(void *context, const struct sockaddr_storage *found, unsigned count,
                 const char *reason);
    /* The last handle of the lookup has been closed, after done() or lookup_cancel(). */
    void (*closed)(void *context);
    void *context, *closed_context;
};

/* Starts a lookup; *user is copied. Returns NULL with errno if there is no memory, thread or descriptor;
 * then no function is called. */
struct lookup *lookup_start(uv_loop_t *loop, const char *host, const struct lookup_user *user);

/* Cancels the lookup: done() will not be called, but closed() will. */
void lookup_cancel(struct lookup *lookup);
