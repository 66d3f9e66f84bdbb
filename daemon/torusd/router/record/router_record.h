/* The record of a router. A folder of the router calls only folders below it in this list:
 *
 *     router.c    the object and its clock
 *     links/      one connection: admission, frames in and out, silence, the carrier
 *     ports/      dialling, the link that is up, refused connections, links that flap
 *     flooding/   link states and faults of cables, told to all nodes
 *     record/     this record, the queues of ports
 *     topology/   which links are up, and the texts of faults. Like frames/ and links/handshake.c, it does
 *                 not use a router
 *     interface/  what a router needs from outside, and its limits
 */
#pragma once

#include "daemon/lib/base/secrets.h"
#include "daemon/torusd/router/interface/handler.h"
#include "daemon/torusd/router/interface/io.h"
#include "daemon/torusd/router/record/link_record.h"
#include "daemon/torusd/router/record/port_record.h"
#include "daemon/torusd/router/topology/topology.h"

#define FAULTS_KNOWN 64u /* most faults of other nodes that are kept at a time */

struct known_fault {
    struct fault_report report;
    uint64_t boot;   /* of its node */
    uint32_t number; /* of the statement; the newer statement has the higher one */
    uint64_t until;  /* when it is forgotten; 0: this entry is empty */
};

struct faults {
    struct known_fault known[FAULTS_KNOWN];
    uint32_t number; /* of this node's last statement */
    uint64_t state_at, restate_at;
};

/* Another machine states links under this node's rank. */
struct contest {
    uint64_t since;  /* when the first of the recent statements was noticed */
    unsigned times;  /* how many statements have been noticed since then */
    uint64_t answer; /* when this node may answer the next one */
};

struct router {
    const struct torus *torus;
    uint32_t rank;
    uint64_t boot;
    struct secrets secrets;
    struct router_io io;
    struct router_handler handler;
    struct slab_pool *pool;
    struct outgoing_pool outgoing;
    struct topology topology;
    struct port port[TORUS_MAX_PORTS];
    struct link *reading; /* the link whose bytes are being decoded */
    unsigned told; /* how often the handler has been told of the topology during that decoding */
    bool must_tell_again; /* the handler must be told once more after the decoding */
    uint64_t now;         /* time of the last event, which is precise enough for heartbeats */
    bool stopping, any_to_close;
    uint64_t flood_at;  /* ROUTER_NEVER: nothing to flood */
    uint64_t confirmed; /* what this node states with the next flood */
    enum topology_forwards forwards;
    uint64_t forwards_until; /* when TOPOLOGY_FORWARDS is withdrawn; else ROUTER_NEVER */
    uint32_t quiet;          /* bits of the ports that are quiet (links/quiet.h) */
    bool told_forwarding;    /* the last flood has told who forwards */
    /* When links are looked at next, if this node forwards and has any. Set when that begins: a time long over would look
     * as if this node had not run since then. */
    uint64_t quick_at;
    bool must_tell_confirmed; /* the handler must be told after the decoding */
    struct faults faults;
    struct contest contest;
    uint64_t heartbeat, silence;
    uint64_t beat_at; /* when the next heartbeat is due, if a link is up */
};
