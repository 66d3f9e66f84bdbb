/* A whole torus in one process: the daemon's own router and exchanges, with virtual time, links with a latency and
 * a rate that divide the byte stream anywhere, disks in memory, and faults. The same seed gives the same trace.
 *
 * After every event the cheap invariants are checked (nodes.c). A violation fails the test with the seed and the
 * virtual time. */
#pragma once

#include "daemon/torusd/core/core.h"
#include "proto/peer.pb-c.h"

#define MICROSECONDS UINT64_C(1000)

/* With sanitizers, which take ten times as long, long tests run one in that many of their seeds and cases. */
#ifdef __SANITIZE_ADDRESS__
#define SIM_SHARE 20
#else
#define SIM_SHARE 1
#endif

#define SIM_MOST_ALGORITHMS 64 /* algorithm_count() is less */

/* Whether a case of an enumeration has its turn, when `before` cases of the same kind (such as the same algorithm) came
 * before it: the first of each kind always has. */
static inline bool sim_has_turn(unsigned before)
{
    return before % SIM_SHARE == 0;
}

struct sim;

struct sim_setup {
    const char *dims;
    uint64_t seed;
    uint64_t latency; /* of a link, in nanoseconds; with `chop`, random values around it */
    uint64_t rate;    /* of a link in each direction, in bytes per second; 0: unlimited */
    uint64_t burst; /* 0, or bytes by which a link's limiter may be ahead of its rate: like Linux's
                       * htb, it lets a packet through at once below this, then holds back */
    /* Bytes that a socket takes before they leave; 0: 128 KiB. Those of torusd take 16 KiB for a link of up to 500
     * Mbit/s (net/sockets.c). */
    uint64_t unsent;
    uint64_t memory; /* budget of a node; 0: 64 MiB */
    bool shared;     /* nodes assume that they share a processor: messages are expensive */
    bool chop;       /* bytes arrive in pieces of any size, disk operations take random times */
    /* NULL: a violation fails the cmocka test. It must not return. */
    void (*violated)(const struct sim *sim, const char *invariant, const char *text);
    /* NULL, or called with each frame that a node hands to its sockets. */
    void (*on_frame)(struct sim *sim, uint32_t rank, Peer__Head__KindCase kind);
    /* NULL, or called with the bytes of each frame that a node hands to its sockets (prefix, head, body;
     * malloc'ed, may be replaced). Returns how many times the frame is sent: 1, unless the node lies. */
    unsigned (*on_bytes)(struct sim *sim, uint32_t rank, unsigned port, uint8_t **bytes,
                         size_t *length);
    void *context; /* for all */
};

struct sim *sim_new(const struct sim_setup *setup);
/* A simulator for tests of faults: with random delays, and on every third seed with so little memory that blocks
 * need several rounds. All links are up. */
struct sim *sim_new_whole(const char *dims, uint64_t seed);
/* Stops all nodes; fails the test if a node has not given back all of its buffers. */
void sim_free(struct sim *sim);

/* SIM_TEST(BEGIN, NAME) { ... }: a test with a simulator, `sim`, that BEGIN returns and that is freed after it;
 * SIM_SEED_TEST(COUNT, BEGIN, NAME): one that is played with that many seeds, each as `seed`. */
#define SIM_TEST(begin, name) OBJECT_TEST(struct sim *, sim, begin, sim_free(sim), name)
#define SIM_SEED_TEST(count, begin, name)                                                          \
    static void name##_in(struct sim *sim, uint64_t seed);                                         \
    SEED_TEST(count, name)                                                                         \
    {                                                                                              \
        struct sim *sim = begin;                                                                   \
        name##_in(sim, seed);                                                                      \
        sim_free(sim);                                                                             \
    }                                                                                              \
    static void name##_in(struct sim *sim, uint64_t seed)

void *sim_context(const struct sim *sim); /* of the setup */
/* Call this if an invariant does not hold: fails the test, with the seed and the time. */
void sim_violated(const struct sim *sim, const char *invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

uint64_t sim_now(const struct sim *sim);
struct chance *sim_chance(struct sim *sim);
/* A random number below `below` from this stream. */
uint32_t sim_any(struct sim *sim, uint32_t below);
const struct torus *sim_torus(const struct sim *sim);

/* The number of frames of a kind that a node has sent since the start, or since the counts were reset. */
uint64_t sim_frames_sent(const struct sim *sim, uint32_t rank, Peer__Head__KindCase kind);
void sim_forget_frames(struct sim *sim);
/* A hash of all events. */
uint64_t sim_trace(const struct sim *sim);
/* The number of frames that all nodes have sent. */
uint64_t sim_frames(const struct sim *sim);

/* Runs until `until` is true or `most` has passed. Returns whether it is true. */
bool sim_run(struct sim *sim, uint64_t most, bool (*until)(struct sim *sim, void *context),
             void *context);
void sim_pass(struct sim *sim, uint64_t time);
/* Runs until every node knows that every link is up. Fails the test if that takes too long. */
void sim_run_until_whole(struct sim *sim);
/* A simulator with this setup (.dims = ..., .seed = ...), all of whose links are up. */
#define SIM_WHOLE(...) sim_whole(&(const struct sim_setup){__VA_ARGS__})
struct sim *sim_whole(const struct sim_setup *setup);
/* Calls `call` at that time. */
void sim_at(struct sim *sim, uint64_t at, void (*call)(struct sim *sim, void *context),
            void *context);
/* Calls `watch` after every event until it returns true. One at a time. */
void sim_watch(struct sim *sim, bool (*watch)(struct sim *sim, void *context), void *context);
/* For `watch`: the nodes (bits, of the first 64) whose state may have changed since its last call. */
uint64_t sim_touched(const struct sim *sim);

/* --- nodes --- */

enum sim_death {
    SIM_STOP,  /* SIGTERM: tells its neighbours */
    SIM_CRASH, /* the process dies: its connections are reset, its disk stays as it is */
    SIM_POWER, /* the machine dies: nobody is told */
};

bool sim_alive(const struct sim *sim, uint32_t rank);
void sim_kill(struct sim *sim, uint32_t rank, enum sim_death death);
/* Crashes the node at the end of the event in which it records its next decision to commit, before any message
 * about the decision has left. */
void sim_crash_when_decided(struct sim *sim, uint32_t rank);
void sim_restart(struct sim *sim, uint32_t rank);
/* SIGSTOP, and SIGCONT after this time: the kernel goes on, the process does nothing. Links must survive a stop that
 * is shorter than their silence (see network.c). */
void sim_freeze(struct sim *sim, uint32_t rank, uint64_t time);
bool sim_frozen(const struct sim *sim, uint32_t rank);
/* The node's `count`-th allocation from now on fails (only if swarm/heap.c is linked). */
void sim_fail_allocation(struct sim *sim, uint32_t rank, uint64_t count);
/* When the first fault happened that may make an exchange fail, or UINT64_MAX; the number of such faults; and whether
 * a fault has slowed a node, link or disk down. */
uint64_t sim_harmed_at(const struct sim *sim);
unsigned sim_harms(const struct sim *sim);
bool sim_slowed(const struct sim *sim);
/* Ends all faults that do not end by themselves: all nodes run, and links and disks work. */
void sim_heal(struct sim *sim);
/* From its next start on, the node speaks a minor version of the peer protocol that is older by this. */
void sim_set_minors_back(struct sim *sim, uint32_t rank, uint32_t minors_back);
struct router *sim_router(struct sim *sim, uint32_t rank);
struct exchanges *sim_exchanges(struct sim *sim, uint32_t rank);
struct groups *sim_groups(struct sim *sim, uint32_t rank);
struct survey *sim_survey(struct sim *sim, uint32_t rank);
/* Length of the answers to surveys: bytes of the value (uint8_t)(rank + kind). */
#define SIM_SURVEY_ANSWER (SURVEY_PART + 1000u)

/* --- links --- */

enum sim_wire {
    SIM_WIRE_UP,
    SIM_WIRE_CUT,    /* no carrier: both ends notice at once, unless they are stopped */
    SIM_WIRE_SILENT, /* carrier up, but nothing passes; sent bytes arrive when the wire is up again */
    SIM_WIRE_DEAF,   /* the same in one direction: nothing arrives at the named node */
    SIM_WIRE_NARROW, /* packets of full size are dropped, each time that they are sent */
};

void sim_set_wire(struct sim *sim, uint32_t rank, unsigned port, enum sim_wire state);
/* SILENT or DEAF for a while. The link must survive this if it is shorter than its silence. */
void sim_stall(struct sim *sim, uint32_t rank, unsigned port, enum sim_wire how, uint64_t time);
/* Nanoseconds in each direction; 0: the initial value. */
void sim_set_latency(struct sim *sim, uint32_t rank, unsigned port, uint64_t latency);
/* Ends the connection at this end; the other end is not told. */
void sim_half_open(struct sim *sim, uint32_t rank, unsigned port);
/* Bytes per second in each direction, for this link alone. */
void sim_set_rate(struct sim *sim, uint32_t rank, unsigned port, uint64_t rate);
/* The same for what leaves this node. */
void sim_set_rate_from(struct sim *sim, uint32_t rank, unsigned port, uint64_t rate);
/* What usually leaves this node there, also after sim_heal(): the initial value is that of the setup. */
void sim_set_usual_rate(struct sim *sim, uint32_t rank, unsigned port, uint64_t rate);
uint64_t sim_usual_rate(struct sim *sim, uint32_t rank, unsigned port);
/* The configuration of a node, and from its next start on: what it sends there, in bytes per second. */
void sim_set_nominal(struct sim *sim, uint32_t rank, unsigned port, uint64_t rate);
uint64_t sim_nominal(const struct sim *sim, uint32_t rank, unsigned port);
/* Whether the node lies from now on: its links may then be closed without a fault. sim_setup.on_bytes and sim_say()
 * decide what it sends. */
void sim_set_lying(struct sim *sim, uint32_t rank, bool lies);
/* Call this when a node has lied: contents and outcomes of exchanges are no longer checked, because they may be
 * wrong. */
bool sim_has_lied(const struct sim *sim);
/* Makes the node send these bytes on a link, after the bytes already handed to its socket. Returns false if it has
 * no connection at this port. */
bool sim_say(struct sim *sim, uint32_t rank, unsigned port, const uint8_t *bytes, size_t length);
/* Flips one bit in each of the next `count` pieces that arrive at any node. */
void sim_damage(struct sim *sim, unsigned count);
/* Call this if sim_setup.on_bytes alters blocks: written bytes may be wrong until the damage is found. */
void sim_alter(struct sim *sim);

/* --- exchanges --- */

struct sim_request {
    struct sim_request *next;
    struct sim *sim;
    uint32_t root;
    struct job *exchange;      /* NULL: refused at once, ended, cancelled, or its root is dead */
    char id[EXCHANGE_ID_SIZE]; /* "" : refused at once */
    char from[64];             /* of the spec, as are these: */
    enum schedule_operation operation;
    uint32_t sender;
    bool shrink;
    /* shrink: the nodes (bits) whose blocks are missing in the first output seen under its final name, and the id of
     * its attempt; "" if none was seen. */
    uint64_t missing;
    char missing_in[EXCHANGE_ID_SIZE];
    bool ended;
    struct error error;            /* code ERROR_NONE: success, and */
    struct exchange_result result; /* `node`, by rank, and the other lists and texts are copies */
    char algorithm[40];
};

/* A spec of blocks that are generated, not read from files and not written to files. */
#define GENERATED(...)                                                                             \
    {                                                                                              \
        .from = "", .to = "", __VA_ARGS__                                                          \
    }

/* Sends a request to node `root`. The request is valid until sim_free(). */
struct sim_request *sim_exchange(struct sim *sim, uint32_t root, const struct spec *spec);
/* The same with a schedule from a file: the client sends the routes of the algorithm, which must be named, to the
 * root in parts. */
struct sim_request *sim_exchange_imported(struct sim *sim, uint32_t root, const struct spec *spec);
/* The client disconnects, and hears nothing more. */
void sim_abandon(struct sim_request *request);
/* The client cancels the exchange, and waits for the answer. */
void sim_cancel(struct sim_request *request);
bool sim_run_until_ended(struct sim_request *request, uint64_t most);
/* Nodes (bits) that an exchange has left out, according to its outputs and to its client. */
uint64_t sim_missing(const struct sim_request *request);
/* The median time of the repetitions of a successful exchange, in seconds. */
double sim_median_seconds(const struct sim_request *request);
/* True if the node knows the exchange. */
bool sim_info(struct sim *sim, uint32_t rank, const char *id, struct exchange_info *info);
/* Whether no exchange, barrier or group runs on any live node, and no memory is reserved. */
bool sim_is_quiet(struct sim *sim, void *unused);

/* --- disks --- */

/* Source folders are imaginary: "/same/1000" has blocks of 1000 bytes each, "/random/1000" blocks of 0 to 1000 bytes.
 * Their contents are the pattern of this seed. */
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

/* Makes each operation take up to `most` nanoseconds longer. */
void sim_disk_slow(struct sim *sim, uint32_t rank, uint64_t most);
/* Makes the disk full. */
void sim_disk_full(struct sim *sim, uint32_t rank, bool full);
/* Makes the next operation of this kind on this node fail. */
void sim_disk_fail(struct sim *sim, uint32_t rank, enum sim_disk_fault fault);

enum sim_output { SIM_OUTPUT_NONE, SIM_OUTPUT_TEMPORARY, SIM_OUTPUT_FINAL };

/* The state of an exchange's output on the node's disk; the node may be dead. Fails the test if the output has its
 * final name and is not whole. */
enum sim_output sim_output(struct sim *sim, uint32_t rank, const char *id);
/* The name of a journal record or temporary folder on the node's disk, valid until the next call; NULL if there is
 * none. */
const char *sim_leftover(struct sim *sim, uint32_t rank);
/* Whether the node has decided to commit as the root, even if it no longer remembers it. */
bool sim_decided(struct sim *sim, uint32_t rank, const char *id);
