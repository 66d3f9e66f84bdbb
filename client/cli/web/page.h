/* Pages for a browser, each of which is one file with its text, styles, scripts and data; and the torus as they draw it
 * (torus.js). */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "client/cli/terminal/cli.h"
#include "daemon/lib/schedule/torus.h"
#include "proto/error.h"

struct page {
    const char *
        body; /* a complete document with the lines "<!--style-->", "<!--data-->" and "<!--scripts-->" */
    const char *style, *more_style;
    const char *const *scripts; /* ends with NULL */
    json_t *data;               /* for the scripts: the object DATA; NULL: none */
};

/* Writes the page. The caller checks the stream. Whatever text the data holds, it cannot end the script. */
void page_write(FILE *out, const struct page *p);

/* Writes the page to a file ("-": standard output), and gives up its data; without data, memory was short. Returns
 * EXIT_DONE, or another exit code after printing the reason, without a new file. */
int page_file_write(const struct cli *cli, const char *file, const struct page *p);

#define TORUS_JSON_MOST_NODES 1024u

/* How the drawing of a channel leads from its node to the next one. */
enum channel_shape {
    CHANNEL_STRAIGHT, /* a line between the two */
    CHANNEL_WRAPS,    /* out of the frame on one side, and in on the other */
    CHANNEL_LEAVES,   /* to a node in another frame: a short way out, and a short way in there */
};

/* Returns the places of the nodes of a torus, its frames and its channels as an object, which the caller owns:
 *
 *     dims, node_count "8x8", 64
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
