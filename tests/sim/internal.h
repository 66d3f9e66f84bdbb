/* Shared by the files of the simulator only. */
#ifndef TORUSD_TESTS_SIM_INTERNAL_H
#define TORUSD_TESTS_SIM_INTERNAL_H

#include "daemon/files/folders.h"
#include "tests/sim/disk/file_system.h"
#include "tests/sim/events.h"
#include "tests/sim/memory.h"
#include "tests/sim/network/network.h"
#include "tests/sim/sim.h"

#define SIM_KINDS 64

/* Each consumer of chance has a stream of its own, so that a run with a fault less differs only
 * where that fault had consequences. */
enum sim_stream {
    SIM_STREAM_TEST, /* sim_chance() */
    SIM_STREAM_DAEMONS,
    SIM_STREAM_WIRES,
    SIM_STREAM_DISKS,
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
    bool leaving; /* it is being taken apart */
    bool frozen;
    uint64_t frozen_until;
    bool crash_when_decided, doomed;
    struct chance chance; /* its daemon's */
    uint64_t allocations; /* see memory.h */
    enum sim_death death;
    uint32_t life; /* counts starts */
    struct slab_pool pool;
    struct core *core;
    struct workers workers;
    struct roots roots;
    struct folders folders;
    struct storage storage;
    struct disk_job *jobs;           /* under way */
    struct connection_end *dirty;    /* link_next() has something for these */
    uint32_t no_carrier;             /* ports (bits) of which its router has been told so */
    uint32_t dials[TORUS_MAX_PORTS]; /* counts them: only the last one leads to anything */
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
    bool flipped; /* a bit of what was on its way, at any time */
    struct node *node;
    struct wire *wire; /* by rank * dims + dimension */
    struct connection *connections;
    struct sim_request *requests;
    struct sim_programs *programs; /* of those that have been given back, too */
    bool (*watch)(struct sim *sim, void *context);
    void *watch_context;
    bool ending;
    uint64_t harmed_at;
    unsigned harms;
    bool slowed, lied;
};

/* Of what has no name of its own. */
#define sim_fail(sim, ...) sim_violated(sim, "order", __VA_ARGS__)

void sim_schedule(struct sim *sim, uint64_t delay, const char *what,
                  void (*run)(struct sim *sim, void *object, uint64_t number), void *object,
                  uint64_t number);

/* The next event happens. Returns false if there is none. */
bool sim_step(struct sim *sim);

/* When no event is left that is for them. */
void sim_programs_forget(struct sim *sim);

/* See sim_harmed_at(). */
void sim_harmed(struct sim *sim);

/* Something that the node has begun and is told of when it is over. */
void sim_schedule_at_node(struct node *node, uint64_t delay, const char *what,
                          void (*run)(struct sim *sim, void *object, uint64_t number),
                          void *object);

/* Starts the node, which is not alive; it stays so if its disk does not let it. */
void sim_start_node(struct node *node);
/* All that a node does before it sleeps: ticks, sending, a time to wake up. */
void sim_settle(struct node *node);
/* Around each call into the node's core. Do not nest. */
void sim_enter(struct node *node);
void sim_leave(void);

/* disk/storage.c. The node's process opens its storage when it starts: 0, or -1 with *e if its disk does
 * not let it. It closes it when it ends, with all that is under way. */
int storage_open(struct node *node, struct error *e);
void storage_close(struct node *node);

/* --- request_records.c --- */

/* Of any node; NULL: nobody asked for it under this name. */
struct sim_request *sim_request_by_id(struct sim *sim, const char *id);
/* Notes the id that the request has now: each attempt has one of its own. */
void sim_keep_id(struct sim_request *request);
/* The root is dead: its clients hear nothing more. */
void sim_requests_lose_root(struct sim *sim, uint32_t root);
/* The nodes (bits) that its result says were down. */
uint64_t sim_missing_by_result(const struct sim_request *request);
void sim_requests_free(struct sim *sim);

#endif
