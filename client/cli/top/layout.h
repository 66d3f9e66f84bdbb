/* Where the nodes of a torus lie in a drawing of character cells. The last two dimensions of more than one node are the
 * rows and columns of a plane; further dimensions have a plane for each of their nodes. A ring or line is one row, which
 * is continued below; a network with other graphs is a table, with some lines a node. */
#pragma once

#include "daemon/lib/schedule/torus.h"

enum top_layout_kind { TOP_LAYOUT_PLANES, TOP_LAYOUT_ROW, TOP_LAYOUT_TABLE };

#define TOP_NO_DIM TORUS_MAX_DIMS

struct top_layout {
    enum top_layout_kind kind;
    const struct torus *torus;
    unsigned across, down; /* the dimensions of columns and rows; TOP_NO_DIM: none */
    unsigned axes;         /* dimensions of more than one node */
    unsigned label;        /* columns of a node's rank and mark */
    unsigned cell_width, cell_height;
    unsigned in_row; /* nodes in a row */
    unsigned planes, planes_across, plane_width, plane_height, plane_title;
    unsigned width, height; /* of the whole drawing */
};

/* Chooses the largest drawing that fits into that many rows and columns; if none fits, one that is higher, and only then
 * one that is also wider. The torus must stay in place. */
struct top_layout top_layout_make(const struct torus *t, unsigned rows, unsigned columns);

/* The upper left of a node. */
void top_layout_place(const struct top_layout *l, uint32_t rank, unsigned *row, unsigned *column);

/* The first node of a plane, and the upper left of its title. */
uint32_t top_layout_plane(const struct top_layout *l, unsigned plane, unsigned *row,
                          unsigned *column);

/* The node in a direction on the screen: steps of -1, 0 or 1. Returns `rank` itself if there is none. */
uint32_t top_layout_move(const struct top_layout *l, uint32_t rank, int down, int across);
