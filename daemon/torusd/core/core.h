/* One node without I/O: its links (router), its exchanges, its groups, copies and surveys, wired once for the
 * daemon, the simulator, fuzzing and tests. Connections, time and random numbers come through
 * router/io.h, disks through engine/output_store.h, long work goes to base/work.h.
 *
 * Frames come in by router_connected() and link_received(), and go out by link_next()
 * (router.h). After every event the caller calls core_tick() if its deadline has passed, and
 * then sends what there is to send. */
#pragma once

#include "daemon/torusd/copy/copy.h"
#include "daemon/torusd/exchange/exchange.h"
#include "daemon/torusd/group/group.h"
#include "daemon/torusd/survey/survey.h"

struct core;

struct core_setup {
    const struct torus *torus; /* must outlive the core, like the pool and the storage */
    uint32_t rank;
    struct router_io io;
    const struct secrets *secrets; /* copied; NULL: no cluster key */
    struct slab_pool *pool;
    const struct storage *storage;
    const struct tree_store *trees; /* for copies; must outlive their threads. NULL: none */
    struct workers workers;
    uint64_t memory_budget;       /* bytes for blocks on their way, of all exchanges together */
    double link_mbit;             /* nominal rate of all ports (core_set_rates()); 0: unknown */
    uint64_t link_burst;          /* bytes that a link passes at once after a pause */
    double daemons_per_processor; /* at least 1; 0 means 1 */
    uint64_t heartbeat, silence;  /* router_set_heartbeats(), in nanoseconds; 0: the defaults */
    uint32_t
        minors_back; /* it speaks a minor version of the peer protocol that is older by this; usually 0 */
    /* As exchanges_setup.processor. */
    void (*processor)(void *context, uint64_t *used, uint64_t *delayed);
    void *processor_context;
    /* Called when schedules have been counted (planning/choose.h). May be NULL. */
    void (*planned)(void *context);
    void *planned_context;
    /* Called when a link of the torus has come up or gone down, or a node has confirmed link states. May be NULL. */
    void (*links_changed)(void *context);
    void *links_context;
};

/* Creates a node; core_free() frees it. Nothing is dialled before core_start(). Returns NULL with *e if there
 * is no memory, or if the storage cannot tell what is on record. */
struct core *core_new(const struct core_setup *setup, struct error *e);
/* Starts to dial the neighbours. */
void core_start(struct core *core);

/* Ends all exchanges on this node without telling other nodes, closes all connections, and frees
 * the core. */
void core_free(struct core *core);

/* Sets the nominal rates of the links, in Mbit/s: by port, and of ports that have none of their own. */
void core_set_rates(struct core *core, const struct nominal_rate *rate, double link_mbit);

/* Returns when core_tick() must be called next (as io.now()), or ROUTER_NEVER. */
uint64_t core_deadline(const struct core *core);
/* Handles the deadlines of the links, exchanges and groups that have passed. */
void core_tick(struct core *core);

/* Whether all invariants between two events hold. Returns 0, or -1 with *e: a bug. */
int core_check(const struct core *core, struct error *e);

/* Return the parts of the core; borrowed. */
struct router *core_router(struct core *core);
struct exchanges *core_exchanges(struct core *core);
struct groups *core_groups(struct core *core);
struct copies *core_copies(struct core *core);
struct survey *core_survey(struct core *core);
/* Returns what this node's users hold. Code that serves clients sets the capacities of the resources that they
 * take. */
struct shares *core_shares(struct core *core);
