/* Reductions on a whole torus in memory: an engine on every node, channels that deliver in order but at random
 * times, sources that may be late, and the expected results, computed one vector at a time. Link with
 * -Wl,--wrap=router_wake: a port is asked for frames only after it was woken. Allocations of the engines count for
 * failing_memory.h. */
#pragma once

#include "daemon/torusd/engine/reducing.h"
#include "router_fixture.h"

enum { NET_HANDLE = 5 };

struct how {
    const char *dims;
    const char *algorithm;         /* of the trees; NULL: one tree, to `root` */
    const struct algorithm *other; /* or this one */
    bool rooted;                   /* only the trees of `root` */
    uint32_t root;
    enum reduction_type type;
    enum reduction_operator operation;
    bool everywhere, unchecked;
    uint64_t elements;  /* of a block */
    bool varied;        /* blocks of different sizes, none longer; some are empty */
    uint32_t per_round; /* elements; 0: all */
    uint32_t window;    /* 0: 1 */
    bool late;          /* sources are sometimes late */
    const char *whole;  /* the torus is the second row of this one, of two dimensions; or NULL */
    const struct peer_group_call *call; /* or NULL */
};

struct packet {
    struct packet *next;
    struct peer_message *head;
    uint8_t *body;
    uint32_t length;
};

struct member {
    struct net *net;
    struct router_fixture f;
    struct source source;
    struct sink sink;
    struct reduction_trees trees;
    struct engine_part part;
    struct engine_setup setup;
    struct engine *engine; /* NULL: there was no memory for it */
    struct slab_writer source_writer, writer;
    uint8_t **vector, **result, **written; /* blocks, by owner */
    uint64_t *read;                        /* bytes, by owner */
    uint64_t admitted;
    bool asked; /* the source was asked too early, and must call wake */
    bool deaf;  /* nothing is delivered to it */
    bool full;  /* the sink's writes last */
    bool awake[TORUS_MAX_PORTS];
    struct packet *first[TORUS_MAX_PORTS], *last[TORUS_MAX_PORTS]; /* on their way in */
};

struct net {
    struct how how;
    struct reducing_options options;
    struct torus torus;
    struct member *member;
    uint32_t element;
    uint64_t rounds, random;
    uint64_t packets, bodies; /* that have been sent, and the bytes in them */
    uint64_t damage;          /* the packet with this number, from 1, is damaged; 0: none */
    uint32_t damaged_at;      /* rank */
    unsigned damaged_port;
};

/* Opens the torus. The vectors depend only on `how`, the times of events on the seed. */
struct net *net_open(const struct how *how, uint64_t seed);
void net_close(struct net *net);

/* Bytes of the block for an owner. */
uint64_t net_size(const struct net *net, uint32_t owner);

/* Runs until there are no more events. */
void net_run(struct net *net);

/* Checks that all rounds are finished on all nodes, and that each owner, or each node, has exactly the right result. */
void net_check(const struct net *net);
/* Checks the results so far. Returns whether an engine has failed. */
bool net_check_part(const struct net *net);

/* A frame for a member from its neighbour at `port`: as engine_frame(). */
int net_feed(struct net *net, uint32_t rank, unsigned port, const struct peer_message *head,
             const uint8_t *body, uint32_t length, struct error *e);
