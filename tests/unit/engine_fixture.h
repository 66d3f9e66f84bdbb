/* One node's engine over a router without a network: a source and a sink that know every byte of all blocks, and
 * data frames to and from neighbours. */
#pragma once

#include "daemon/lib/schedule/plan.h"
#include "daemon/torusd/engine/engine.h"
#include "daemon/torusd/engine/piece_digest.h"
#include "router_fixture.h"

enum { PLUS, MINUS }; /* ports of a ring */
enum { HANDLE = 5, NODES_MOST = 130, BLOCK_MOST = 4096 + 8, BODY_MOST = 70000 };

/* Two steps of node 1 of a ring of three: it sends a block of its own, and relays one. */
extern const struct plan engine_fixture_plan;

struct test_source {
    struct source base;
    struct slab_pool *pool;
    struct slab_writer writer;
    uint32_t rank;
    uint64_t size[NODES_MOST];
    uint8_t read[NODES_MOST][BLOCK_MOST]; /* bytes that have been */
    bool in_order;                        /* front to back */
    bool asleep, failing;
    unsigned naps;        /* the number of reads that come too early */
    uint32_t asleep_for;  /* a destination, if not NODES_MOST */
    uint32_t sleeps_soon; /* bytes that it still has, if not UINT32_MAX */
};

/* The codes with which source and sink fail, so that a test can tell them apart. */
#define SOURCE_FAILS ERROR_IO
#define SINK_FAILS ERROR_REFUSED

struct test_sink {
    struct sink base;
    uint32_t rank;
    uint8_t got[NODES_MOST][BLOCK_MOST];
    uint64_t bytes[NODES_MOST], pending;
    unsigned writes[NODES_MOST];
    bool in_order, failing;
    bool damaged;  /* reports all received blocks as damaged */
    bool careless; /* whatever comes */
};

struct node {
    struct router_fixture f;
    struct test_source source;
    struct test_sink sink;
    struct engine *engine; /* the test makes it of `setup` */
    struct engine_setup setup;
};

/* A data frame that is received or sent. Most tests write it as a text of words: `rN` is its round (0 unless given); `sN`,
 * `hN` and `lN` are step, hops and left of a frame of the stepped engine; without these it is one of the streaming engine,
 * and each number is the place of a piece. `=N` is a size, behind the place of its piece or alone. The last word is the
 * body, `-` an empty one. "r1 0=2 1 bBc" has two pieces of round 1, the first of which has two bytes. */
struct frame {
    unsigned port;
    bool streamed;
    uint32_t round;
    uint32_t step, hops, left; /* stepped */
    size_t pieces;             /* streaming */
    uint32_t piece[8];
    size_t sizes;
    uint32_t size[8];
    size_t digests;
    uint64_t digest[8];
    const char *body;
};

/* Byte `offset` of a block: every other byte is a capital letter. */
uint8_t letter(uint32_t source, uint32_t destination, uint64_t offset);

/* Bytes of a block, and the digest of these bytes as a piece. `out` has room for a terminating 0. */
uint64_t letters(char *out, uint32_t source, uint32_t destination, uint64_t begin, uint32_t length);

/* A node without an engine; every block has `block` bytes. The setup is for one round of whole,
 * uniform blocks and a window of 1; the test may change it. There is one node at a time. */
struct node *node_open(const char *dims, uint32_t rank, uint64_t block);
/* Brings up the links to all neighbours. */
void node_connect(struct node *node);
/* Frees the engine, too. Fails the test if buffers have leaked. */
void node_close(struct node *node);

/* A neighbour sends a frame with this head. */
void send_head(struct node *node, unsigned port, const struct peer_message *head, const char *body);
/* The frame that a text describes. Its body stands in the text. */
struct frame frame_of(unsigned port, const char *text);
/* The text of a frame, of this round. The last eight of them are valid. */
const char *in_round(uint32_t round, const char *text);
/* A neighbour sends a frame. */
void send_frame(struct node *node, const struct frame *frame);
/* Fails the test unless the node accepts the frame. */
void accepts(struct node *node, const struct frame *frame);
/* The same for a frame that is a text. */
void sends(struct node *node, unsigned port, const char *text);
/* The next data frame that the node sends at this port, or NULL; `body` has room for BODY_MOST bytes. */
struct peer_message *next_data(struct node *node, unsigned port, uint8_t *body, uint32_t *length);
/* Fails the test unless the node sends this frame (its port is ignored); NULL: no frame. */
void expect_frame(struct node *node, unsigned port, const struct frame *expected);
void expect(struct node *node, unsigned port, const char *text);

/* A neighbour sends a frame. Fails the test unless the node closes the link, for a reason that contains this text, and
 * goes on. */
void refused(struct node *node, const struct frame *frame, const char *reason);
void sends_bad(struct node *node, unsigned port, const char *text, const char *reason);

/* Fails the test unless this is where the engine stands. */
void expect_described(const struct node *node, const char *text);

/* Takes all frames that leave at the port. */
void node_drain(struct node *node, unsigned port);
