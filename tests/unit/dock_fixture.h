/* A frame buffer without an engine, and holds for it. */
#pragma once

#include "daemon/torusd/engine/frame_buffer.h"
#include "engine_fixture.h"

enum { HOLDS = 20, PIECE = 48 };

struct dock {
    struct node *node;
    struct engine engine;
    struct frame_buffer buffer;
    uint8_t *room;
    struct hold hold[HOLDS];
    struct slab_writer in;
};

/* `copies`: pieces are so small that holds have copies of them. */
void dock_open(struct dock *d, bool copies);
/* Fails the test if memory has leaked. */
void dock_close(struct dock *d);

struct outgoing *dock_frame(struct dock *d);
void dock_free_frame(struct dock *d, struct outgoing *frame);
