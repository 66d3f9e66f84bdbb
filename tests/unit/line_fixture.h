/* Node 1 of a line of three nodes, between a root and a child; or node 0 with requests of its own. */
#pragma once

#include "exchange_fixture.h"

enum {
    PARENT = 1,
    CHILD = 0
}; /* ports of node 1 to nodes 0 and 2; the child of node 0 is at port 0, too */

void line_open(struct exchange_fixture *n, uint32_t rank);
/* LINE_TEST(NAME) { ... }: a test with node 1, as `n`. */
#define LINE_TEST(name) FIXTURE_TEST(struct exchange_fixture, n, line_open_middle, xf_close, name)
void line_open_middle(struct exchange_fixture *n);
/* The number of exchanges that the node knows. */
size_t line_known(struct exchange_fixture *n);

/* Fails the test unless the next message to the parent is a nack with this code that blames node `about`
 * (TORUS_NO_NODE: none) and has this part in its reason (NULL: any reason). */
void line_hears_nack(struct exchange_fixture *n, enum error_code code, uint32_t about,
                     const char *part);
/* Whether the next message at a port is an abort with this code. */
bool line_hears_abort(struct exchange_fixture *n, unsigned port, enum error_code code);

/* Prepares exchange number i of a root behind this port, as that one names it. */
bool line_prepare(struct exchange_fixture *n, unsigned port, uint32_t root, uint32_t i,
                  uint64_t block_bytes);

/* Node 0, which is asked for an exchange of generated blocks. */
struct line_root {
    struct exchange_fixture f;
    struct exchange_client_seen client;
    uint32_t handle;
    char id[EXCHANGE_ID_SIZE];
};

extern const struct spec line_generated, line_barrier;

/* Turns a prepare of generated blocks into one of that barrier. */
void line_prepare_barrier(struct xf_prepare *p);

void line_root_open(struct line_root *r);
/* The prepare that the root sends names the exchange. Returns false if it is not the next message. */
bool line_root_learn(struct line_root *r);
/* The child objects, about itself: node 1. */
bool line_root_object(struct line_root *r, uint32_t code, const char *reason);
