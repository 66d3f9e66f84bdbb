/* The streaming engine for its tests, at node 1 of a mesh of three with whole blocks ("direct"):
 *
 *     0->1 0->2  ->  1  ->  0->2 1->2
 *     1->0 2->0  <-  1  <-  2->0 2->1
 *
 * Each channel has two pieces in this order. Some tests use longer meshes and blocks in segments, so that a node has
 * more pieces to choose from. */
#pragma once

#include "daemon/torusd/engine/streaming.h"
#include "engine_fixture.h"

struct how {
    const char *dims, *algorithm; /* NULL: a mesh of three, whole blocks */
    uint32_t rank, window;        /* window 0: 1, at node 1 */
    bool sizes;                   /* not uniform */
    bool digests, repairs;        /* pieces carry digests, and are repaired if damaged */
    uint64_t block;
    uint32_t round_bytes; /* 0: the whole block */
    bool broadcast;       /* an allgather's algorithm with the block of one node alone: */
    uint32_t sender;
};

/* The passages of the open engine; one is open at a time. */
extern struct passages passages;

struct node *open_engine(const struct how *how);
/* The same, with the first round admitted. */
struct node *begin_engine(const struct how *how);
void close_engine(struct node *node);
#define OPEN_ENGINE(...) open_engine(&(const struct how){__VA_ARGS__})
#define BEGIN_ENGINE(...) begin_engine(&(const struct how){__VA_ARGS__})
/* ENGINE_TEST(BEGIN, NAME) { ... }: a test with the `node` that BEGIN returns; its engine is closed after it. */
#define ENGINE_TEST(begin, name)                                                                   \
    static void name##_at(struct node *node);                                                      \
    TEST_WITH(NULL, engine_teardown, name)                                                         \
    {                                                                                              \
        name##_at(begin);                                                                          \
    }                                                                                              \
    static void name##_at(struct node *node)
int engine_teardown(void **state);
/* The outcome of a round in which an allocation has failed, or none. */
void check_out_of_memory(const struct node *node, bool failed);

/* The letters of blocks of 4 bytes: 0->1 b, 0->2 c, 1->0 d, 1->2 f, 2->0 g, 2->1 h. */
#define FROM_0 "0 1 bBbBcCcC" /* at MINUS */
#define FROM_2 "0 1 gGgGhHhH" /* at PLUS */
#define OWN_TO_0 "0 dDdD"
#define OWN_TO_2 "1 fFfF"
#define ON_TO_0 "1 gGgG"
#define ON_TO_2 "0 cCcC"
extern const struct how whole;
