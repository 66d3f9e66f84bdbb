/* The torus as the pages in a browser draw it (torus.js): the places of its nodes, its frames and its channels. */
#pragma once

#include <jansson.h>

#include "daemon/lib/schedule/torus.h"
#include "proto/error.h"

#define TORUS_JSON_MOST_NODES 1024u

/* How the drawing of a channel leads from its node to the next one. */
enum channel_shape {
    CHANNEL_STRAIGHT, /* a line between the two */
    CHANNEL_WRAPS,    /* out of the frame on one side, and in on the other */
    CHANNEL_LEAVES,   /* to a node in another frame: a short way out, and a short way in there */
};

/* Returns an object, which the caller owns:
 *
 *     dims, nodes      "8x8", 64
 *     width, height    of the drawing, in pixels at its natural size
 *     margin           from a frame to its outermost nodes
 *     place            [x, y] of each node
 *     coordinates      of each node: "(0, 3)"
 *     frames           [x, y, width, height, name] of each plane
 *     channels         [node, port, next node, shape, dx, dy, name]; dx and dy: the direction in which it leaves;
 *                      name of the port: "+0"
 *
 * Returns NULL with *e if the torus has more than TORUS_JSON_MOST_NODES nodes, or memory is short. */
json_t *torus_json(const struct torus *t, struct error *e);
