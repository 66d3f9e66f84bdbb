/* Internal declarations of the simulator. */
#pragma once

#include "daemon/torusd/files/folders.h"
#include "tests/sim/copies/copies.h"
#include "tests/sim/disk/file_system.h"
#include "tests/sim/events.h"
#include "tests/sim/memory.h"
#include "tests/sim/network/network.h"
#include "tests/sim/sim.h"

#define SIM_KINDS 64

/* Each consumer of random numbers has a stream of its own, so that a run with one fault less differs only in the
 * consequences of that fault. */
enum sim_stream {
    SIM_STREAM_TEST, /* sim_chance() */
    SIM_STREAM_DAEMONS,
    SIM_STREAM_WIRES,
    SIM_STREAM_DISKS,
    SIM_STREAM_TREES,
    SIM_STREAMS
};

struct connection;
struct connection_end;
struct wire;
struct disk_job;

struct node {
    struct sim *sim;
    uint32_t rank;
    bool alive;
    bool leaving; /* it is being freed */
    bool frozen;
    uint64_t frozen_until;
    bool crash_when_decided, doomed;
    struct chance chance; /* its daemon's */
    uint64_t allocations; /* see memory.h */
    enum sim_death death;
    uint32_t life; /* counts starts */
    uint32_t minors_back;
    uint64_t nominal[TORUS_MAX_PORTS]; /* bytes per second that its configuration says it sends */
    struct slab_pool pool;
    struct core *core;
    struct workers workers;
    struct roots roots;
    struct folders folders;
    struct made_folders made;
    struct storage storage;
    struct disk_job *jobs;           /* under way */
    struct connection_end *dirty;    /* link_next() has something for these */
    uint32_t no_carrier;             /* ports (bits) for which its router has been told so */
    uint32_t dials[TORUS_MAX_PORTS]; /* counts dials: only the last one has an effect */
    uint64_t wake_at;
    struct disk disk;
    struct tree_disk trees;
    struct tree_store tree_store;
    uint64_t sent[SIM_KINDS]; /* frames, by kind of head */
};

struct sim {
    struct sim_setup set;
    struct torus torus;
    struct events events;
    struct chance chance;
    uint64_t now, trace, frames;
    unsigned wakes_now; /* wake-ups at the present virtual time */
    unsigned damage;
    bool flipped; /* a bit in transit was flipped at some time */
    struct node *node;
    struct wire *wire; /* by rank * dims + dimension */
    struct connection *connections;
    struct sim_request *requests;
    struct sim_copy *copies;       /* the latest first */
    struct sim_programs *programs; /* including those that were released */
    bool (*watch)(struct sim *sim, void *context);
    void *watch_context;
    uint64_t touched; /* sim_touched() */
    bool ending;
    uint64_t harmed_at;
    unsigned harms;
    bool slowed, lied;
    bool rated; /* links have had different rates */
};

/* For violations of invariants without a name of their own. */
#define sim_fail(sim, ...) sim_violated(sim, "order", __VA_ARGS__)

void sim_schedule(struct sim *sim, uint64_t delay, const char *what,
                  void (*run)(struct sim *sim, void *object, uint64_t number), void *object,
                  uint64_t number);

/* Runs the next event. Returns false if there is none. */
bool sim_step(struct sim *sim);

/* Call this when no event for them is left. */
void sim_programs_forget(struct sim *sim);

/* See sim_harmed_at(). */
void sim_harmed(struct sim *sim);

/* An operation that the node has started; the node is told when it is over. */
void sim_schedule_at_node(struct node *node, uint64_t delay, const char *what,
                          void (*run)(struct sim *sim, void *object, uint64_t number),
                          void *object);

/* Starts a node that is not alive. It stays down if its disk fails. */
void sim_start_node(struct node *node);
/* Everything that a node does before it sleeps: ticks, sending, setting a time to wake up. */
void sim_settle(struct node *node);
/* Call these around each call into a node's core. They do not nest. */
void sim_enter(struct node *node);
void sim_leave(void);

/* disk/storage.c. The node's process opens its storage when it starts: returns 0, or -1 with *e if its disk fails.
 * It closes the storage, with all jobs that run, when it ends. */
int storage_open(struct node *node, struct error *e);
void storage_close(struct node *node);

/* The request with this id, of any node; NULL if there is none. */
struct sim_request *sim_request_by_id(struct sim *sim, const char *id);
/* Notes the present id of a request; each attempt has its own id. */
void sim_keep_id(struct sim_request *request);
/* Call this when the root is dead: its clients hear nothing more. */
void sim_requests_lose_root(struct sim *sim, uint32_t root);
/* The nodes (bits) that were down according to the result of a request. */
uint64_t sim_missing_by_result(const struct sim_request *request);
void sim_requests_free(struct sim *sim);
