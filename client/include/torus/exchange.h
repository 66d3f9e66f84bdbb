/* Collective operations on a whole torus: requests, progress and results. Part of torus/torus.h, which says what
 * holds for all functions. */
#ifndef TORUS_EXCHANGE_H
#define TORUS_EXCHANGE_H

#include <string.h>
#include <torus/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an exchange is doing. */
enum torus_state {
    TORUS_STATE_UNKNOWN = 0, /* not known yet, or unknown to this version of the library */
    TORUS_STATE_WAITING,     /* in the start queue: other exchanges have the memory that it needs */
    TORUS_STATE_ENTERED,     /* at a barrier that other nodes have not reached */
    TORUS_STATE_OPENING,     /* the nodes open their files and tell the sizes */
    TORUS_STATE_OPENED,      /* this node has; others have not */
    TORUS_STATE_PREPARING,   /* the nodes reserve memory */
    TORUS_STATE_READY,       /* this node can begin, others are not ready */
    TORUS_STATE_RUNNING,
    TORUS_STATE_PAUSED,     /* between two repetitions */
    TORUS_STATE_DONE,       /* this node has all its blocks, and waits for the decision */
    TORUS_STATE_DECIDING,   /* all nodes have; the decision to commit is being recorded */
    TORUS_STATE_COMMITTING, /* the finished files get their final names */
    TORUS_STATE_FAILING,    /* this node has failed, and waits for the reason that all agree on */
    TORUS_STATE_FINISHED, /* this node has done its part, with nothing to commit; ended from here */
    TORUS_STATE_COMMITTED,
    TORUS_STATE_FAILED,
    TORUS_STATE_IN_DOUBT, /* done, but not known whether committed */
};

/* "running", "in doubt"...; "unknown" for any other value. Static, never NULL. */
TORUS_EXPORT const char *torus_state_name(enum torus_state state);

enum torus_operation {
    TORUS_EXCHANGE = 0, /* each node has a block for each other node (MPI_Alltoall) */
    TORUS_ALLGATHER,    /* each node has one block, for all (MPI_Allgather) */
    TORUS_BROADCAST,    /* one node has a block, for all (MPI_Bcast) */
    TORUS_BARRIER,      /* no blocks: see torus_client_barrier() */
};

enum torus_mode {
    TORUS_MODE_ANY = 0,   /* whichever suits the algorithm */
    TORUS_MODE_STEPPED,   /* in the steps of the algorithm */
    TORUS_MODE_STREAMING, /* no step waits for another: all-port algorithms only */
};

/* How the delivered data was compared with the data that was sent. If they differ, the operation
 * fails with TORUS_ERROR_DAMAGED. */
enum torus_check {
    TORUS_CHECK_NOTHING = 0, /* there was no data (barrier) */
    TORUS_CHECK_DIGESTS,     /* files: digests of each piece of 256 bytes or more where it
                              * arrived, and of all that was sent and delivered at all nodes */
    TORUS_CHECK_BYTES,       /* generated data: every byte, where it arrived */
};

/* "exchange", "stepped", "every byte"...; "unknown" for any other value. Static, never NULL. */
TORUS_EXPORT const char *torus_operation_name(enum torus_operation operation);
TORUS_EXPORT const char *torus_mode_name(enum torus_mode mode);
TORUS_EXPORT const char *torus_check_name(enum torus_check check);

#define TORUS_AUTO "auto" /* the algorithm that is predicted to be the fastest */
#define TORUS_REPEAT_MAX 1000000

/* What to exchange. Initialise it with torus_request_init() and set what matters. */
struct torus_request {
    size_t struct_size; /* set by torus_request_init() */

    /* "at2"... (a broadcast uses an allgather algorithm). With NULL, "" or TORUS_AUTO the daemon chooses
     * the algorithm, with "cccube-best" the number of packets ("cccube-q5" has 5). */
    const char *algorithm;

    /* Either a generated pattern, which every destination verifies (`from` and `to` NULL): */
    uint64_t block_bytes; /* what each node sends to each other; 0 is allowed */

    /* or files, by their absolute paths at the nodes; %r stands for the node's rank, %% for a per
     * cent sign. Node s sends the file `from`/d to node d, which gets it as `to`/s. Allgather and
     * broadcast: `from` is the file with the node's block (or a folder, and then `from`/s), which
     * every node, itself included, gets as `to`/s. */
    const char *from;
    const char *to;

    uint64_t timeout_ms; /* for the whole operation; 0 = the daemon's default */

    enum torus_operation operation; /* not TORUS_BARRIER */
    enum torus_mode mode;
    uint32_t sender; /* TORUS_BROADCAST: rank of the node that has the block */

    /* How many exchanges to run back to back, as a program does in a loop: prepared once, with a
     * barrier between each two. For a generated pattern only; at most TORUS_REPEAT_MAX; 0 means 1. If
     * one repetition fails, the request fails. */
    uint32_t repeat;

    bool missing_ok; /* a missing file counts as an empty block */
    /* TORUS_EXCHANGE with TORUS_AUTO only: nodes that are down, or go down before the commit is decided,
     * are left out and do not fail the exchange; torus_result.missing lists them. */
    bool shrink;
    /* Any operation, not together with `shrink`: the operation waits for nodes that are down, and for links
     * that it cannot avoid, within timeout_ms (by default an hour each time). It is then retried; complete
     * repetitions are not run again. If the daemon that was asked is restarted, the library connects to it again
     * and repeats the request, with the rest of the timeout, unless the request names a schedule. A request for
     * files is repeated only if the daemon has said that nothing was decided, which it says when it is stopped
     * properly; otherwise the request fails with TORUS_ERROR_IN_DOUBT. After the decision to commit, the operation
     * waits for nodes that are down until they have confirmed. If the timeout ends before that, the request fails
     * with TORUS_ERROR_IN_DOUBT. */
    bool wait;
    /* With `to` only: if `to` is a folder with an old result (files named by ranks, and nothing else), the new
     * result replaces it, at all nodes or at none. Without `replace`, `to` must be missing or empty. */
    bool replace;
    char reserved[4]; /* 0 */

    /* Instead of an algorithm: the digest of a schedule that the daemon has from torus_client_schedule().
     * NULL or "" for none. Not for TORUS_BROADCAST. */
    const char *schedule;
};

static inline void torus_request_init(struct torus_request *request)
{
    memset(request, 0, sizeof *request);
    request->struct_size = sizeof *request;
}

struct torus_progress {
    const char *exchange; /* id; "" before there is one; each attempt has a new id */
    enum torus_state state;
    uint64_t round, rounds; /* of a repetition */
    uint64_t done_bytes;    /* bytes delivered at the node that was asked */
    uint64_t total_bytes;   /* bytes to deliver there; 0 = not known */
    uint32_t repetition;    /* the repetition under way, counted from 0 */
    uint32_t repeat;        /* number of repetitions; 0 before the daemon has said anything */
    /* For a barrier: the number of nodes that have not entered it yet, as the daemon that was asked knows it. */
    uint32_t missing_count;
    const char *missing; /* their ranks: "3, 7" or, if there are many, "3, 7 ..."; "": not known */
    /* torus_request.wait: what is down and waited for, "node 4 (1,0)"; "": nothing. */
    const char *waits_for;
};

/* Called whenever the daemon reports, and about five times a second while it does not. The progress
 * is valid during the call only. Return 0 to go on, or anything else to cancel the operation, as
 * torus_client_cancel() does. The callback must not start operations or close the client. */
typedef int torus_progress_fn(void *data, const struct torus_progress *progress);

struct torus_port {
    const char *name; /* "+0" */
    uint64_t tx_bytes, rx_bytes;
    uint64_t tx_blocks;
    uint64_t combined_messages; /* that left through it */
    uint32_t min_rtt_us;        /* of the connection, in microseconds; 0 = unknown */
    uint64_t rate_bps;          /* measured by TCP at the end, bits per second; 0 = unknown */
};

struct torus_node {
    uint32_t rank;
    uint64_t nanoseconds;
    uint32_t most_starts; /* the most legs that started here at the same time, */
    uint32_t most_ends;   /* and that ended (1 with one-port algorithms) */
    size_t port_count;
    const struct torus_port *const *port;
    uint64_t missing_files; /* see torus_result; of this node's source */
    uint64_t unused_files;
};

/* With several repetitions, all counts and the nodes' times describe the last repetition. */
struct torus_result {
    const char *id;
    const char *dims;
    enum torus_operation operation;
    const char *algorithm;
    enum torus_mode mode; /* TORUS_MODE_STEPPED or TORUS_MODE_STREAMING */
    enum torus_check check;
    uint32_t nodes;
    uint64_t block_bytes;  /* the largest block, where sizes differ */
    uint64_t nanoseconds;  /* of the slowest node, from the start to its last block */
    double bound;          /* lower bound on the blocks on the busiest channel */
    double link_mbit;      /* nominal rate of a link, Mbit/s; 0 = unknown */
    uint32_t startups;     /* counted, per round */
    uint64_t transmission; /* counted, per round, in blocks */
    uint64_t rounds;
    uint64_t blocks_delivered; /* at all nodes together */
    uint64_t bytes_delivered;
    size_t node_count;
    const struct torus_node *const *node; /* by rank; of a barrier, empty except at node 0 */
    uint32_t repeat;                      /* at least 1 */
    size_t each_count;                    /* `repeat`, or 0 where node_count is 0 */
    const uint64_t *each;                 /* the slowest node's nanoseconds, of each repetition */
    uint64_t all_nanoseconds; /* from the first start until all had done the last repetition */
    const char *without;      /* links that were down, and were avoided: "link 3:+0"; "": none */
    uint32_t reroutes;        /* attempts that were withdrawn because a link or node went down */
    uint32_t damages;         /* how often data was damaged on its way, and was sent again */
    uint64_t kept_bytes;      /* bytes that had arrived before the last attempt, and were kept */
    size_t missing_count;
    const uint32_t *missing; /* torus_request.shrink: nodes that took no part; rising */

    /* In the source folders of all nodes: files that were missing and count as empty (with
     * torus_request.missing_ok), and files that were not sent, because their names are no ranks of this
     * torus (hidden files and lost+found are not counted). */
    uint64_t missing_files;
    uint64_t unused_files;
};

#define TORUS_DIGEST_SIZE 65 /* 64 hexadecimal digits and the terminating 0 */

/* Gives the daemon a schedule, in the format that 'torusctl help plan' describes, and sets `digest` to
 * its SHA-256, for torus_request.schedule. All nodes read and verify the schedule when an exchange
 * names it. The daemon keeps the schedule until this client is closed or gives the daemon another
 * schedule. Returns 0, or -1 with *error set. */
TORUS_EXPORT int torus_client_schedule(struct torus_client *client, const char *text, size_t length,
                                       char digest[TORUS_DIGEST_SIZE], struct torus_error *error);

/* The same without waiting; see torus_client_start_status(). `text` must stay in place until `done`
 * is called; `digest` is set at once. */
TORUS_EXPORT int torus_client_start_schedule(struct torus_client *client, const char *text,
                                             size_t length, char digest[TORUS_DIGEST_SIZE],
                                             torus_done_fn *done, void *data,
                                             struct torus_error *error);

/* Runs the operation on the whole torus and waits until all nodes have committed it (or have
 * delivered and checked the data, if no files are written), or it has failed. `progress` may be NULL;
 * `data` is passed to `progress`.
 *
 * Returns 0 with a *result that the caller frees with torus_result_free(), or -1 with *error set,
 * with the exchange's id if there was one. A failed exchange leaves no output at any node.
 * TORUS_ERROR_IN_DOUBT has two meanings, and the text says which one applies. Either the exchange was
 * committed, but nodes have not confirmed that their output is in place: they went down or cannot be reached,
 * something is in the way of their output, or the timeout is over. Or it is not known here whether the exchange
 * was committed, because the daemon has gone. In both cases the nodes complete the exchange by themselves
 * once they reach each other and their disks work; torus_status.unconfirmed lists an exchange until all nodes
 * have confirmed it. */
TORUS_EXPORT int torus_client_exchange(struct torus_client *client,
                                       const struct torus_request *request,
                                       torus_progress_fn *progress, void *data,
                                       struct torus_result **result, struct torus_error *error);
TORUS_EXPORT void torus_result_free(struct torus_result *result); /* NULL does nothing */

/* The same without waiting; see torus_client_start_status(). `data` is passed to both functions;
 * an invalid request fails at once with TORUS_ERROR_USAGE. */
TORUS_EXPORT int torus_client_start_exchange(struct torus_client *client,
                                             const struct torus_request *request,
                                             torus_progress_fn *progress,
                                             struct torus_result **result, torus_done_fn *done,
                                             void *data, struct torus_error *error);

/* Waits until every node has been asked for this barrier (MPI_Barrier). Barriers at the same time need
 * different names; `name` has at most 63 bytes, and NULL or "" is the default barrier. `timeout_ms` is
 * how long to wait for the other nodes; 0 = the daemon's default, which is days. If one node gives up,
 * the barrier fails at all nodes. Everything else is as for torus_client_exchange(); `result` may be
 * NULL. */
TORUS_EXPORT int torus_client_barrier(struct torus_client *client, const char *name,
                                      uint64_t timeout_ms, torus_progress_fn *progress, void *data,
                                      struct torus_result **result, struct torus_error *error);
TORUS_EXPORT int torus_client_start_barrier(struct torus_client *client, const char *name,
                                            uint64_t timeout_ms, torus_progress_fn *progress,
                                            struct torus_result **result, torus_done_fn *done,
                                            void *data, struct torus_error *error);

#ifdef __cplusplus
}
#endif

#endif
