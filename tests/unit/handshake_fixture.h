/* Two nodes at the ends of a connection, and all messages of their handshake. */
#pragma once

#include "daemon/torusd/router/handshake.h"
#include "proto/frame.h"
#include "tests/unit/message_bytes.h"

#define SAID_MOST 4u

struct side {
    struct handshake handshake;
    struct handshake_place place;
    struct secrets secrets;
    uint64_t random;
    uint8_t said[SAID_MOST][FRAME_MAX_STRANGER_HEAD];
    size_t length[SAID_MOST];
    unsigned says, heard;
};

struct pair {
    struct torus torus;
    struct side dialler, listener;
};

/* Random bytes of a side, `context`. */
void fill(void *context, void *buffer, size_t size);

/* Keeps a message of a side, `context`. */
void say(void *context, const struct peer_message *head);

struct secrets keys(const char *first, const char *second);

void place(struct pair *p, struct side *s, uint32_t rank, unsigned port, uint64_t seed);

/* Node 1 dials node 5 of a 4x4, port +0 to -0. Connections of different seeds have different challenges. */
void begin(struct pair *p, struct secrets dialler, struct secrets listener, uint64_t seed);

int hear_bytes(struct side *s, const uint8_t *bytes, size_t length, struct error *e);

/* Passes on the next message of `from`. */
int hear(struct side *s, struct side *from, struct error *e);

/* Runs until neither side has more messages. Returns the side that refuses, or NULL. */
struct side *run(struct pair *p, struct error *e);

void check_done(struct pair *p);

void check_refused(struct pair *p, struct side *by, const char *text);
