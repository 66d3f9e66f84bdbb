/* A whole torus in one process: the daemon's own router and exchanges, with virtual time, links of
 * a latency and a rate that cut the byte stream anywhere, disks in memory, and faults. One seed,
 * one run: the same seed gives the same trace.
 *
 * After every event the invariants that cost little are checked (nodes.c); a violation fails the test
 * with the seed and the virtual time. */
#ifndef TORUSD_TESTS_SIM_SIM_H
#define TORUSD_TESTS_SIM_SIM_H

#include "daemon/core/core.h"
#include "proto/peer.pb-c.h"

#define MICROSECONDS UINT64_C(1000)

/* One in so many of the seeds and cases of long tests is run with sanitizers, which take ten times as long. */
#ifdef __SANITIZE_ADDRESS__
#define SIM_SHARE 8
#else
#define SIM_SHARE 1
#endif

struct sim;

struct sim_setup {
    const char *dims;
    uint64_t seed;
    uint64_t latency; /* of a link, in nanoseconds; with `chop` anything about it */
    uint64_t rate;    /* of a link each way, in bytes a second; 0: unlimited */
    uint64_t burst;   /* 0, or bytes by which a link's limiter may be ahead of its rate: as Linux's
                       * htb, it lets a packet through at once if it is no more, then holds back */
    uint64_t memory;  /* budget of a node; 0: 64 MiB */
    bool shared;      /* the nodes believe that they share a processor: messages are dear */
    bool chop;        /* bytes come in pieces of any size, disks take their time */
    /* NULL: a violation fails the cmocka test. It must not return. */
    void (*violated)(const struct sim *sim, const char *invariant, const char *text);
    /* NULL, or called with each frame that a node hands to its sockets. */
    void (*on_frame)(struct sim *sim, uint32_t rank, Peer__Head__KindCase kind);
    /* NULL, or called with the bytes of each frame that a node hands to its sockets (prefix, head, body;
     * malloc'ed, may be replaced). Returns how many times they leave: 1, unless the node lies. */
    unsigned (*on_bytes)(struct sim *sim, uint32_t rank, unsigned port, uint8_t **bytes,
                         size_t *length);
    void *context; /* for all */
};

struct sim *sim_new(const struct sim_setup *setup);
/* For tests of faults: with delays, and on every third seed with so little memory that blocks take several rounds.
 * All links are up. */
struct sim *sim_new_whole(const char *dims, uint64_t seed);
/* Stops all nodes; fails the test if a node has not given back all of its buffers. */
void sim_free(struct sim *sim);

void *sim_context(const struct sim *sim); /* of the setup */
/* An invariant does not hold: fails the test, with the seed and the time. */
void sim_violated(const struct sim *sim, const char *invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

uint64_t sim_now(const struct sim *sim);
struct chance *sim_chance(struct sim *sim);
/* Any number below this one, by that. */
uint32_t sim_any(struct sim *sim, uint32_t below);
const struct torus *sim_torus(const struct sim *sim);

/* Frames of a kind that a node has sent since the simulation began or was told to forget them. */
uint64_t sim_frames_sent(const struct sim *sim, uint32_t rank, Peer__Head__KindCase kind);
void sim_forget_frames(struct sim *sim);
/* A hash of everything that has happened. */
uint64_t sim_trace(const struct sim *sim);
/* Counts frames that have left any node. */
uint64_t sim_frames(const struct sim *sim);

/* Lets time pass until `until` is true or `most` has passed; returns whether it is true. */
bool sim_run(struct sim *sim, uint64_t most, bool (*until)(struct sim *sim, void *context),
             void *context);
void sim_pass(struct sim *sim, uint64_t time);
/* Until every node knows that every link is up; fails the test if that takes too long. */
void sim_run_until_whole(struct sim *sim);
/* Calls `call` at that time. */
void sim_at(struct sim *sim, uint64_t at, void (*call)(struct sim *sim, void *context),
            void *context);
/* Calls `watch` after every event until it returns true. One at a time. */
void sim_watch(struct sim *sim, bool (*watch)(struct sim *sim, void *context), void *context);

/* --- nodes --- */

enum sim_death {
    SIM_STOP,  /* SIGTERM: says good-bye */
    SIM_CRASH, /* the process dies: its connections are reset, its disk stays as it is */
    SIM_POWER, /* the machine dies: nobody is told */
};

bool sim_alive(const struct sim *sim, uint32_t rank);
void sim_kill(struct sim *sim, uint32_t rank, enum sim_death death);
/* Crashes it at the end of the event in which it records its next decision to commit, before any
 * message about it has left. */
void sim_crash_when_decided(struct sim *sim, uint32_t rank);
void sim_restart(struct sim *sim, uint32_t rank);
/* SIGSTOP, and SIGCONT after that time: its kernel goes on, it does nothing. Links must bear what
 * is less than their silence (see network.c). */
void sim_freeze(struct sim *sim, uint32_t rank, uint64_t time);
bool sim_frozen(const struct sim *sim, uint32_t rank);
/* Its `count`-th allocation from now on fails (only where swarm/heap.c is linked). */
void sim_fail_allocation(struct sim *sim, uint32_t rank, uint64_t count);
/* When a fault that may make an exchange fail first happened, or UINT64_MAX; how many there were;
 * and whether anything has slowed a node, link or disk down. */
uint64_t sim_harmed_at(const struct sim *sim);
unsigned sim_harms(const struct sim *sim);
bool sim_slowed(const struct sim *sim);
/* Ends all faults that do not end by themselves: nodes are up and run, links and disks work. */
void sim_heal(struct sim *sim);
struct router *sim_router(struct sim *sim, uint32_t rank);
struct exchanges *sim_exchanges(struct sim *sim, uint32_t rank);
struct groups *sim_groups(struct sim *sim, uint32_t rank);

/* --- links --- */

enum sim_wire {
    SIM_WIRE_UP,
    SIM_WIRE_CUT,    /* no carrier: both ends notice at once, unless they are stopped */
    SIM_WIRE_SILENT, /* carrier up, but nothing comes through; what was sent comes when it is up */
    SIM_WIRE_DEAF,   /* the same in one direction: nothing comes to the node that is named */
    SIM_WIRE_NARROW, /* what would fill a packet is dropped, each time that it is sent again */
};

void sim_set_wire(struct sim *sim, uint32_t rank, unsigned port, enum sim_wire state);
/* SILENT or DEAF for a while, which the link must bear if it is less than its silence. */
void sim_stall(struct sim *sim, uint32_t rank, unsigned port, enum sim_wire how, uint64_t time);
/* Nanoseconds each way; 0: what it was at the beginning. */
void sim_set_latency(struct sim *sim, uint32_t rank, unsigned port, uint64_t latency);
/* The connection ends here, and the other end is not told. */
void sim_half_open(struct sim *sim, uint32_t rank, unsigned port);
/* Bytes a second each way, of this link alone. */
void sim_set_rate(struct sim *sim, uint32_t rank, unsigned port, uint64_t rate);
/* The node lies from now on, or no longer: its links may be closed without a fault. What it says is up to
 * sim_setup.on_bytes and sim_say(). */
void sim_set_lying(struct sim *sim, uint32_t rank, bool lies);
/* A node has lied: what exchanges carry and come to is not checked any more, as it may be false. */
bool sim_has_lied(const struct sim *sim);
/* It says these bytes on a link, after what it has handed to its socket there. Returns false if it has no
 * connection at that port. */
bool sim_say(struct sim *sim, uint32_t rank, unsigned port, const uint8_t *bytes, size_t length);
/* Flips one bit in each of the next `count` pieces that arrive anywhere. */
void sim_damage(struct sim *sim, unsigned count);
/* sim_setup.on_bytes alters blocks: what is written may be false until that is found. */
void sim_alter(struct sim *sim);

/* --- exchanges --- */

struct sim_request {
    struct sim_request *next;
    struct sim *sim;
    uint32_t root;
    struct job *exchange;      /* NULL: refused at once, ended, cancelled, or its root is dead */
    char id[EXCHANGE_ID_SIZE]; /* "" : refused at once */
    char from[64];             /* of the spec, as these: */
    enum operation operation;
    uint32_t sender;
    bool shrink;
    /* shrink: the nodes (bits) of which the first output that was seen under its final name has no blocks,
     * and of which attempt it was; "": none has been seen. */
    uint64_t missing;
    char missing_in[EXCHANGE_ID_SIZE];
    bool ended;
    struct error error;            /* code ERROR_NONE: success, and */
    struct exchange_result result; /* `node`, by rank, `each`, `gone` and `algorithm` are copies */
    char algorithm[40];
};

/* Asks node `root`. The request stays good until sim_free(). */
struct sim_request *sim_exchange(struct sim *sim, uint32_t root, const struct spec *spec);
/* The same, but the algorithm, which has to be named, comes from a file: the client gives its routes
 * to the root as a schedule, part by part. */
struct sim_request *sim_exchange_imported(struct sim *sim, uint32_t root, const struct spec *spec);
/* The client disconnects, and hears nothing more. */
void sim_abandon(struct sim_request *request);
/* The client cancels the exchange, and waits for the answer. */
void sim_cancel(struct sim_request *request);
bool sim_run_until_ended(struct sim_request *request, uint64_t most);
/* Nodes (bits) that an exchange has left out, by its outputs and what its client was told. */
uint64_t sim_missing(const struct sim_request *request);
/* The median of the repetitions of an exchange that has succeeded, in seconds. */
double sim_median_seconds(const struct sim_request *request);
/* True if the node knows the exchange. */
bool sim_info(struct sim *sim, uint32_t rank, const char *id, struct exchange_info *info);
/* No exchange is under way on any live node, nor a barrier or group, and no memory is reserved. */
bool sim_is_quiet(struct sim *sim, void *unused);

/* --- disks --- */

/* Folders are imaginary: "/same/1000" has blocks of 1000 bytes each, "/random/1000" of up to that
 * many, zero too. Their contents are the pattern of this seed. */
#define SIM_CONTENTS_SEED 7u
uint64_t sim_block_size(const char *from, uint32_t source, uint32_t destination);

enum sim_disk_fault {
    SIM_DISK_OPEN,
    SIM_DISK_READ,
    SIM_DISK_CHECK, /* a source has changed */
    SIM_DISK_WRITE,
    SIM_DISK_SYNC,
    SIM_DISK_RECORD,
    SIM_DISK_COMMIT,
    SIM_DISK_FAULTS
};

/* Every operation takes up to `most` nanoseconds longer. */
void sim_disk_slow(struct sim *sim, uint32_t rank, uint64_t most);
/* Nothing new can be written. */
void sim_disk_full(struct sim *sim, uint32_t rank, bool full);
/* The next operation of this kind on this node fails. */
void sim_disk_fail(struct sim *sim, uint32_t rank, enum sim_disk_fault fault);

enum sim_output { SIM_OUTPUT_NONE, SIM_OUTPUT_TEMPORARY, SIM_OUTPUT_FINAL };

/* What lies on the node's disk of the exchange, dead or alive. Fails the test if it is visible
 * under its final name and not whole. */
enum sim_output sim_output(struct sim *sim, uint32_t rank, const char *id);
/* The name of a journal record or temporary folder that is left on the node's disk, valid until
 * the next call; NULL: none. */
const char *sim_leftover(struct sim *sim, uint32_t rank);
/* The node, as the root, has decided to commit, whether it still remembers it or not. */
bool sim_decided(struct sim *sim, uint32_t rank, const char *id);

#endif
