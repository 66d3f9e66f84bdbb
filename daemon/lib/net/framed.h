/* Messages (proto/frame.h) over a connection of a Unix socket, on a loop. */
#pragma once

#include <uv.h>

#include "daemon/lib/net/access.h"
#include "proto/frame.h"

struct framed {
    uv_pipe_t pipe;
    struct frame_stream in;
    uint32_t most; /* bytes of a message that arrives; a longer one ends the connection */
    /* 0: a peer that does not read what is sent to it is closed. Otherwise, while more bytes than these wait for it, no
     * message is taken from it. */
    size_t hold;
    bool held;    /* that is so now */
    bool ignores; /* may be set: what arrives is dropped */
    /* A message has arrived (borrowed). */
    void (*took)(struct framed *f, const uint8_t *bytes, size_t size);
    /* The connection has ended, for whatever reason, and *f can be freed. */
    void (*closed)(struct framed *f);
    /* These may be NULL. */
    void (*invalid)(struct framed *f,
                    const struct error *e); /* instead of the end: bytes that are not a message */
    void (*finished)(
        struct framed *f);            /* instead of the end: the peer sends no more, but may read */
    void (*wrote)(struct framed *f);  /* a message has been written */
    void (*ending)(struct framed *f); /* the connection ends now; closed() follows */
    void *context;
    char why[200]; /* in closed(): why it has ended; "": by framed_close() */
};

/* Starts to read from a connected socket; most, took() and closed() are set. Takes the descriptor in any case. Returns
 * 0, or -1: closed() follows. */
int framed_open(struct framed *f, uv_loop_t *loop, int fd);

/* Whether the connection ends, or has ended. */
bool framed_is_closing(const struct framed *f);

/* How many bytes wait for the peer to read them. */
size_t framed_waiting(const struct framed *f);

/* Sends a packed message, whose frame it frees; NULL (there was no memory) closes the connection, and so does a peer
 * that does not read, unless framed.hold is set. */
void framed_write(struct framed *f, uint8_t *frame, size_t size);

/* Packs and sends a message. */
void framed_send(struct framed *f, const ProtobufCMessage *message);

/* Close the connection, unless that has begun; closed() follows. `why` (may be NULL) is what framed.why says then. */
void framed_close(struct framed *f);
void framed_end(struct framed *f, const char *why);

/* A Unix socket whose clients send messages (framed.h). */

struct framed_server;

struct framed_client {
    struct framed framed;
    uint32_t user; /* uid of its process */
    void *data;    /* for the user of the server; NULL at the beginning */
    struct framed_server *server;
    struct framed_client *next;
};

struct framed_server_user {
    uint32_t most;    /* bytes of a message */
    unsigned clients; /* that are connected at the same time; others are turned away */
    void (*took)(void *context, struct framed_client *client, const uint8_t *bytes, size_t size);
    /* The client has gone, and is freed after that. May be NULL. */
    void (*left)(void *context, struct framed_client *client);
    void (*closed)(void *context); /* the server has gone; may be NULL */
    void *context;
};

/* Listens at the path, which must outlive the server; the socket is for the owner and the group of this process, or for
 * everybody if `rules` (NULL: none) check each process. Returns NULL with *e. */
struct framed_server *framed_server_open(uv_loop_t *loop, const char *path,
                                         const struct access_rules *rules,
                                         const struct framed_server_user *user, struct error *e);

/* The first of the clients that are connected; `next` leads to the others. */
struct framed_client *framed_server_clients(const struct framed_server *s);

/* Removes the socket, and closes everything; *s is freed when the loop has closed the handles: left() of each client,
 * then closed(). */
void framed_server_close(struct framed_server *s);
