/* One node without I/O: its links (router), its exchanges and its groups, wired once for the daemon, the
 * simulator, fuzzing and tests. Connections, time and randomness come through router/interface/io.h, disks
 * through engine/output_store.h, what takes long goes to base/work.h.
 *
 * Frames come in by router_connected() and link_received(), go out by link_next() (router.h). After
 * anything has happened to it: core_tick() if its deadline has passed, then send what there is. */
#ifndef TORUSD_CORE_CORE_H
#define TORUSD_CORE_CORE_H

#include "daemon/exchange/exchange.h"
#include "daemon/group/group.h"

struct core;

struct core_setup {
    const struct torus *torus; /* must outlive the core, as the pool and the storage */
    uint32_t rank;
    struct router_io io;
    const struct secrets *secrets; /* copied; NULL: no cluster key */
    struct slab_pool *pool;
    const struct storage *storage;
    struct workers workers;
    uint64_t memory_budget;       /* bytes for blocks on their way, all exchanges together */
    double link_mbit;             /* nominal rate; 0: unknown */
    uint64_t link_burst;          /* bytes that a link passes at once after a pause */
    double daemons_per_processor; /* at least 1; 0 is 1 */
    uint64_t heartbeat, silence;  /* router_set_heartbeats(), in nanoseconds; 0: the defaults */
    /* May be NULL: schedules have been counted (exchange/phases/choose_algorithm.h). */
    void (*planned)(void *context);
    void *planned_context;
};

/* Nothing is dialled before core_start(). Returns NULL with *e if there is no memory, or the storage
 * cannot tell what is on record. */
struct core *core_new(const struct core_setup *setup, struct error *e);
void core_start(struct core *core);

/* Ends all exchanges on this node without telling the others, closes all connections, frees. */
void core_free(struct core *core);

/* When core_tick() must be called next (as io.now()), or ROUTER_NEVER. */
uint64_t core_deadline(const struct core *core);
void core_tick(struct core *core);

/* Whether everything that must hold between two events does. Returns 0, or -1 with *e: a bug. */
int core_check(const struct core *core, struct error *e);

struct router *core_router(struct core *core);
struct exchanges *core_exchanges(struct core *core);
struct groups *core_groups(struct core *core);
/* What this node's users hold; who serves clients sets the capacities of what they take there. */
struct shares *core_shares(struct core *core);

#endif
