/* One connection to the discovery socket. */
#ifndef TORUSD_DISCOVERY_PROCESS_CLIENT_H
#define TORUSD_DISCOVERY_PROCESS_CLIENT_H

#include <uv.h>

#include "daemon/discovery/discovery.h"
#include "daemon/discovery/setup.h"
#include "proto/frame.h"

struct discovery_client {
    uv_pipe_t pipe;
    struct discovery *discovery;
    struct frame_stream in;
    struct outgoing_setup *setup;                    /* under way for this client, or NULL */
    bool may_set_up;                                 /* root, or the user of this process */
    void (*closed)(struct discovery_client *client); /* its handle is closed: it can be freed */
    void *context;
    struct discovery_client *next;
};

/* Starts to serve a connection. Takes the descriptor in any case. Returns 0, or -1: closed() follows. */
int discovery_client_begin(struct discovery_client *client, uv_loop_t *loop, int fd);
/* Closes the connection, and forgets its setup; closed() follows. */
void discovery_client_close(struct discovery_client *client);

#endif
