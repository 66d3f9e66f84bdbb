/* Shared by the files of the simulator only. */
#ifndef TORUSD_TESTS_SIM_INTERNAL_H
#define TORUSD_TESTS_SIM_INTERNAL_H

#include "tests/sim/events.h"
#include "tests/sim/sim.h"

#define SIM_KINDS 32

struct connection;
struct connection_end;
struct wire;
struct output;

struct decision { /* to commit */
    char id[EXCHANGE_ID_SIZE];
    bool forgotten; /* by the daemon; never by the test */
};

struct disk {
    struct output *outputs;
    struct decision *decision;
    size_t decisions;
    bool fault[SIM_DISK_FAULTS];
};

struct node {
    struct sim *sim;
    uint32_t rank;
    bool alive;
    bool crash_when_decided, doomed;
    enum sim_death death;
    uint32_t life; /* counts starts */
    struct slab_pool pool;
    struct core *core;
    struct storage storage;
    struct connection_end *dirty; /* link_next() has something for these */
    uint64_t wake_at;
    struct disk disk;
    uint64_t sent[SIM_KINDS]; /* frames, by kind of head */
};

struct sim {
    struct sim_setup set;
    struct torus torus;
    struct events events;
    struct chance chance;
    uint64_t now, trace, frames;
    unsigned wakes_now; /* wake-ups since time has moved */
    unsigned damage;
    struct node *node;
    struct wire *wire; /* by rank * dims + dimension */
    struct connection *connections;
    struct sim_request *requests;
    bool (*watch)(struct sim *sim, void *context);
    void *watch_context;
    bool ending;
};

/* Fails the test, with the seed and the time. */
void sim_fail(const struct sim *sim, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

void sim_schedule(struct sim *sim, uint64_t delay, const char *what,
                  void (*run)(struct sim *sim, void *object, uint64_t number), void *object,
                  uint64_t number);

/* All that a node does before it sleeps: ticks, sending, a time to wake up. */
void sim_settle(struct node *node);

/* network.c */
void network_open(struct sim *sim);
void network_free(struct sim *sim);
void network_io(struct node *node, struct router_io *io);
void network_flush(struct node *node);
/* The node is about to die: its connections are reset, or its peers are not told. */
void network_node_dies(struct node *node, enum sim_death death);
void network_node_back(struct node *node);

/* disk.c */
void disk_storage(struct node *node, struct storage *storage);
/* Nobody is told any more what the node has begun. */
void disk_storage_closed(struct node *node);
void disk_after_crash(struct node *node);
void disk_free(struct node *node);

#endif
