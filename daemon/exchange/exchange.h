/* The exchanges of one node: their life from prepare to commit:
 *
 *                       root: all below ready        all have done
 *     PREPARING --own and children ready--> READY --go--> RUNNING --own and children done--> DONE
 *         |                                                 |  rounds: round_done up, round_go down
 *         |  refusal, fault, deadline, client gone          |                        |
 *         +----------------> FAILING --root's verdict--> FAILED      commit, renamed: COMMITTED
 *
 * Waves run over the spanning tree of the exchange's root (schedule/tree.h); in each one a node
 * hears from its children before it tells its parent. Of the rounds `window` may be under way at
 * the same time, so their waves overlap: round k + window starts on a node after round k is
 * finished on all. Invariants: in every state but the ended ones the node owes its parent the next
 * word of a wave, or waits for one from it; and nowhere has a round started that is `window` or
 * more ahead of one that some node has not finished.
 *
 * A session of several exchanges back to back is one exchange here: its repetitions are rounds that
 * go on counting, with a wave `repeated` up and a `go` down between them. A node is RUNNING from
 * the first to the last.
 *
 * Every exchange ends committed, failed (everywhere with the same error) or in doubt. */
#ifndef TORUSD_EXCHANGE_EXCHANGE_H
#define TORUSD_EXCHANGE_EXCHANGE_H

#include "daemon/exchange/engine.h"
#include "daemon/exchange/storage.h"

#define EXCHANGE_ID_SIZE 48
#define EXCHANGE_PATH_SIZE 4096
#define BARRIER_NAME_SIZE 64
#define EXCHANGE_REPEAT_MOST 1000000u

enum exchange_state {
    EXCHANGE_PREPARING,
    EXCHANGE_READY,
    EXCHANGE_RUNNING,
    EXCHANGE_DONE,
    EXCHANGE_COMMITTING,
    EXCHANGE_FAILING,
    EXCHANGE_COMMITTED, /* ended from here on */
    EXCHANGE_FAILED,
    EXCHANGE_IN_DOUBT,
};

struct exchange_spec {
    const char *algorithm;
    enum operation operation;
    enum mode mode;
    uint32_t sender;       /* broadcast: whose block */
    const char *barrier;   /* its name; see barrier.c */
    uint64_t block_bytes;  /* of the generated pattern, without folders */
    const char *from, *to; /* "" : generated pattern, verified; see storage.h */
    bool missing_ok;
    uint32_t repeat;     /* so many exchanges back to back, of the pattern only; 0 is 1 */
    uint64_t timeout_ns; /* of them all; 0: a default by sizes and link rate */
};

struct exchange_node_report {
    uint32_t rank;
    uint64_t nanoseconds;
    uint64_t blocks_delivered, bytes_delivered;
    uint32_t most_starts, most_ends; /* legs at a time, see engine.h */
    struct engine_port_counts port[TORUS_MAX_PORTS];
    struct connection_stat link[TORUS_MAX_PORTS]; /* by port, when the node had finished */
};

struct exchange_result {
    const char *id;
    const char *algorithm;
    enum operation operation;
    enum mode mode;       /* stepped or streaming */
    uint64_t block_bytes; /* the largest */
    uint64_t rounds;
    uint64_t nanoseconds; /* of the last repetition, like all that is counted */
    double bound;
    uint32_t startups;     /* counted, per round; streaming: most messages by any channel */
    uint64_t transmission; /* counted, per round; streaming: most blocks by any channel */
    uint64_t blocks_delivered, bytes_delivered;
    const struct exchange_node_report *node; /* by rank; NULL: known at the root only */
    uint32_t repeat;
    const uint64_t *each; /* `repeat` of them: nanoseconds; NULL: known at the root only */
    uint64_t all_ns;      /* from the first go until all had done the last, at the root */
};

/* Who asked for an exchange. */
struct exchange_client {
    void *context;
    /* Exactly one of result and e is NULL. Called once, not from inside exchange_start(). */
    void (*ended)(void *context, const struct exchange_result *result, const struct error *e);
};

struct exchange_progress {
    enum exchange_state state;
    uint32_t repetition, repeat;
    uint64_t round, rounds;           /* of a repetition */
    uint64_t done_bytes, total_bytes; /* delivered at this node; total 0: not known */
};

struct exchange_info {
    char id[EXCHANGE_ID_SIZE];
    char algorithm[32];
    enum exchange_state state;
    char reason[sizeof(((struct error *)0)->text)];
    uint32_t root;
    uint64_t age_ns;
};

struct exchanges;
struct exchange;

struct exchanges_setup {
    struct router *router;
    const struct storage *storage; /* must outlive the exchanges */
    uint64_t memory_budget;        /* bytes for blocks on their way, all exchanges together */
    double link_mbit;              /* nominal rate; 0 = unknown */
    double daemons_per_processor;  /* that handle messages in turn; 1: a machine of its own */
};

/* Returns NULL if there is no memory. */
struct exchanges *exchanges_new(const struct exchanges_setup *setup);
/* Ends all exchanges on this node without a word to the others (their links go down). */
void exchanges_free(struct exchanges *all);

/* The router's handler calls these. */
int exchanges_frame(struct exchanges *all, unsigned port, const Peer__Head *head,
                    const struct extents *body, uint32_t body_length, struct error *e);
struct outgoing *exchanges_next(struct exchanges *all, unsigned port);
void exchanges_topology(struct exchanges *all);

uint64_t exchanges_deadline(const struct exchanges *all);
void exchanges_tick(struct exchanges *all);

/* Starts an exchange on all nodes, with this one as its root. Returns it (good until the client is
 * told that it has ended) or NULL with *e if it is refused right here. `client` is copied. */
struct exchange *exchange_start(struct exchanges *all, const struct exchange_spec *spec,
                                const struct exchange_client *client, struct error *e);

/* The client wants no more: fails the exchange everywhere, unless it has already been decided to
 * commit. The client is told how it ended. */
void exchange_stop(struct exchange *x);

/* The client has gone: the same, but it is not called again. */
void exchange_cancel(struct exchange *x);

const char *exchange_id(const struct exchange *x);
void exchange_progress(const struct exchange *x, struct exchange_progress *progress);

/* Running ones first, then the last that ended, youngest first; at most `most`. Returns how many.
 */
size_t exchanges_list(const struct exchanges *all, struct exchange_info *info, size_t most);
uint64_t exchanges_reserved(const struct exchanges *all);

const char *exchange_state_name(enum exchange_state state);

#endif
