/* Hosts with discovery, and cables between them, in virtual time. */
#pragma once

#include "daemon/lib/discovery/discovery.h"
#include "daemon/lib/discovery/seal.h"

#define WORLD_HOSTS_MOST 80u
#define WORLD_PORTS_MOST 6u
#define WORLD_NO_SEGMENT UINT32_MAX

struct world;

struct world_host {
    struct world *world;
    unsigned number;
    struct discovery *discovery; /* NULL: stopped */
    struct secrets secrets;      /* cluster keys */
    struct interface_state interface[WORLD_PORTS_MOST];
    uint32_t segment[WORLD_PORTS_MOST]; /* to which each interface is plugged */
    bool accepts;                       /* has a torusd-setup */
    bool closed;                        /* was set up before */
    bool deaf;                          /* a firewall drops what arrives */
    /* What torusd-setup does: the last setup, and whether its command runs. */
    bool runs, applied;
    unsigned runs_count;
    uint8_t *setup, reply_key[REPLY_KEY_SIZE];
    size_t setup_size;
    uint8_t nonce[NONCE_SIZE];
    uint8_t last_id[SETUP_ID_SIZE]; /* that was opened */
    bool refuses;                   /* the setup that has arrived, at the next moment */
    struct error refusal;
};

/* A datagram on its way. */
struct world_packet {
    struct world_packet *next;
    uint64_t at;
    unsigned host, interface; /* the receiver */
    struct discovery_address from;
    size_t size;
    uint8_t bytes[];
};

struct world {
    uint64_t now, random;
    double loss;
    unsigned hosts, ports;
    uint32_t segments;
    struct world_host host[WORLD_HOSTS_MOST];
    struct world_packet *first, **last;
    uint64_t sent, bytes_sent;
    bool record; /* delivered packets are kept for world_replay() */
    struct world_packet *recorded;
};

/* Makes hosts that have that many interfaces ("eth0" ...) without cables; none runs. */
void world_begin(struct world *w, unsigned hosts, unsigned ports, uint64_t seed);
void world_end(struct world *w);

/* Starts or stops the discovery of a host. `leaving`: its last packets are sent. */
void world_start(struct world *w, unsigned host);
void world_start_all(struct world *w);
void world_stop(struct world *w, unsigned host, bool leaving);

/* Plugs an interface into a segment (a cable or a switch); WORLD_NO_SEGMENT pulls it out. */
void world_plug(struct world *w, unsigned host, unsigned port, uint32_t segment);
/* Makes a cable. */
uint32_t world_cable(struct world *w, unsigned a, unsigned port_a, unsigned b, unsigned port_b);
/* Cables all hosts as a torus of two dimensions: ports 0 and 1 are + and - of the first one. */
void world_torus(struct world *w, unsigned rows, unsigned columns);

/* Lets time pass. */
void world_run(struct world *w, uint64_t nanoseconds);
/* Lets time pass until done() holds. Returns whether it does within the time. */
bool world_run_until(struct world *w, bool (*done)(struct world *w), uint64_t nanoseconds);

/* Whether every host that runs knows exactly the hosts that run and all cables between them. */
bool world_is_known(struct world *w);

/* The entry of `of` in the database of `at`; NULL: none. */
const struct host_entry *world_entry(struct world *w, unsigned at, unsigned of);
/* The keys of a host, and its id. */
const struct identity *world_identity(unsigned host);
struct host_id world_id(unsigned host);

/* Delivers all recorded packets to the host again. */
void world_replay(struct world *w, unsigned host);

/* Ends the command of a host with this status and output. */
void world_command_ends(struct world *w, unsigned host, uint32_t status, const char *output);

/* Sets a key of a host, also of one that runs; `number` 0: none. */
void world_set_key(struct world *w, unsigned host, unsigned number);
