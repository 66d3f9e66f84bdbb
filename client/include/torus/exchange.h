/* Collective operations on a whole torus: requests, progress and results. Part of torus/torus.h, which has the rules
 * for errors, ownership and threads. */
#ifndef TORUS_EXCHANGE_H
#define TORUS_EXCHANGE_H

#include <string.h>
#include <torus/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an exchange is doing at the node that was asked. */
enum torus_state {
    TORUS_STATE_UNKNOWN = 0, /* not known yet, or unknown to this version of the library */
    TORUS_STATE_WAITING,     /* in the start queue, for memory that other exchanges use */
    TORUS_STATE_ENTERED,     /* this node has entered a barrier; other nodes have not */
    TORUS_STATE_OPENING,     /* the nodes open their files and report the sizes */
    TORUS_STATE_OPENED,      /* this node has opened its files; other nodes have not */
    TORUS_STATE_PREPARING,   /* the nodes reserve memory */
    TORUS_STATE_READY,       /* this node is ready; other nodes are not */
    TORUS_STATE_RUNNING,
    TORUS_STATE_PAUSED,     /* between two repetitions */
    TORUS_STATE_DONE,       /* this node has all its blocks, and waits for the decision */
    TORUS_STATE_DECIDING,   /* all nodes have all blocks; the decision to commit is recorded */
    TORUS_STATE_COMMITTING, /* the finished files get their final names */
    TORUS_STATE_FAILING,    /* this node cannot continue, and waits for the abort */
    TORUS_STATE_FINISHED,   /* ended at this node, with nothing to commit */
    TORUS_STATE_COMMITTED,
    TORUS_STATE_FAILED,
    TORUS_STATE_IN_DOUBT, /* this node has all its blocks, and does not know whether to commit them */
};

/* Returns "running", "in doubt"..., or "unknown" for any other value. Static, never NULL. */
TORUS_EXPORT const char *torus_state_name(enum torus_state state);

enum torus_operation {
    TORUS_EXCHANGE = 0, /* each node has a block for each other node (MPI_Alltoall) */
    TORUS_ALLGATHER,    /* each node has one block for all nodes (MPI_Allgather) */
    TORUS_BROADCAST,    /* one node has a block for all nodes (MPI_Bcast) */
    TORUS_BARRIER,      /* no blocks: see torus_client_barrier() */
};

enum torus_mode {
    TORUS_MODE_ANY = 0,   /* whichever suits the algorithm */
    TORUS_MODE_STEPPED,   /* in the steps of the algorithm */
    TORUS_MODE_STREAMING, /* no step waits for another; all-port algorithms only */
};

/* How the delivered data was compared with the data that was sent. If they differ, the operation
 * fails with TORUS_ERROR_DAMAGED. */
enum torus_check {
    TORUS_CHECK_NOTHING = 0, /* there was no data (barrier) */
    /* Files: the destination compared the digest of each piece of 256 bytes or more, and the digests of all data sent
     * and of all data delivered were compared over all nodes. */
    TORUS_CHECK_DIGESTS,
    TORUS_CHECK_BYTES, /* generated data: the destination compared every byte */
};

/* Return "exchange", "stepped", "every byte"..., or "unknown" for any other value. Static, never NULL. */
TORUS_EXPORT const char *torus_operation_name(enum torus_operation operation);
TORUS_EXPORT const char *torus_mode_name(enum torus_mode mode);
TORUS_EXPORT const char *torus_check_name(enum torus_check check);

#define TORUS_AUTO "auto" /* the daemon chooses the algorithm with the shortest predicted time */
#define TORUS_REPEAT_MAX 1000000

/* What to exchange. Call torus_request_init() first, and then set the fields that differ from the defaults. */
struct torus_request {
    size_t struct_size; /* set by torus_request_init() */

    /* "at2"... (a broadcast uses an allgather algorithm). NULL, "" and TORUS_AUTO let the daemon choose the algorithm.
     * "cccube-best" lets it choose the number of packets of the cccube algorithm ("cccube-q5" uses 5). */
    const char *algorithm;

    /* Either exchange a generated pattern, which every destination verifies (then `from` and `to` are NULL): */
    uint64_t block_bytes; /* bytes that each node sends to each other node; 0 is allowed */

    /* or exchange files, with absolute paths on the nodes. In these paths %r stands for the rank of the node, and %%
     * for a per cent sign. Exchange: node s sends the file `from`/d to node d, which stores it as `to`/s. Allgather and
     * broadcast: `from` is the file with the block of node s, or a folder with that file under the name s; every node,
     * including s, stores the block as `to`/s. */
    const char *from;
    const char *to;

    uint64_t timeout_ms; /* for the whole operation; 0: the daemon's default */

    enum torus_operation operation; /* not TORUS_BARRIER */
    enum torus_mode mode;
    uint32_t sender; /* TORUS_BROADCAST: rank of the node that has the block */

    /* How many exchanges to run back to back, as a program does in a loop: they are prepared once, with a barrier
     * between each two. For a generated pattern only; at most TORUS_REPEAT_MAX; 0 means 1. If one repetition fails, the
     * request fails. */
    uint32_t repeat;

    bool missing_ok; /* a missing file counts as an empty block */
    /* Leave out nodes that are down, or that go down before the root decides to commit, instead of failing.
     * torus_result.missing lists these nodes. For TORUS_EXCHANGE with TORUS_AUTO only. */
    bool shrink;
    /* Wait for nodes that are down, and for links that are down and cannot be avoided, until timeout_ms has passed (by
     * default up to an hour each time). Then the daemon retries the operation, without running complete repetitions
     * again. For all operations, but not together with `shrink`.
     *
     * If the daemon that was asked is restarted, the library connects to it again and repeats the request with the rest
     * of the timeout, unless the request names a schedule. The library repeats a request for files only if the daemon
     * has reported that nothing was decided, as it does when it is stopped properly; otherwise the request fails with
     * TORUS_ERROR_IN_DOUBT.
     *
     * Once the root has decided to commit, the operation waits until nodes that are down have confirmed. If the timeout
     * passes before, the request fails with TORUS_ERROR_IN_DOUBT. */
    bool wait;
    /* If `to` is a folder with an old result (files named by ranks, and nothing else), the new result replaces the old
     * one, at all nodes or at none. Without `replace`, the folder `to` must be missing or empty. For files only. */
    bool replace;
    /* All nodes record what they do; torus_client_survey() with TORUS_SURVEY_TRACE then has it. */
    bool trace;
    char reserved[3]; /* 0 */

    /* Instead of an algorithm: the digest of a schedule that torus_client_schedule() has sent to the daemon. NULL or ""
     * for none. Not for TORUS_BROADCAST. */
    const char *schedule;
};

/* Sets all fields to their defaults. */
static inline void torus_request_init(struct torus_request *request)
{
    memset(request, 0, sizeof *request);
    request->struct_size = sizeof *request;
}

struct torus_progress {
    const char *exchange; /* id of the attempt; "" before the first attempt */
    enum torus_state state;
    uint64_t round, rounds; /* rounds that are done, and the number of rounds, in a repetition */
    uint64_t done_bytes;    /* bytes delivered at the node that was asked */
    uint64_t total_bytes;   /* bytes to deliver there; 0: not known */
    uint32_t repetition;    /* the repetition under way, counted from 0 */
    uint32_t repeat;        /* number of repetitions; 0 before the first report of the daemon */
    /* Barrier: how many nodes have not entered it yet, as far as the daemon that was asked knows. */
    uint32_t missing_count;
    const char *missing; /* their ranks: "3, 7", or "3, 7 ..." if there are many; "": not known */
    /* With torus_request.wait: the node or link that the operation waits for, "node 4 (1,0)"; "": none. */
    const char *waits_for;
};

/* Called for every report of the daemon, and about five times a second between reports. `progress` is valid during
 * the call only. Return 0 to continue, or another value to cancel the operation as torus_client_cancel() does. The
 * callback must not start operations or close the client. */
typedef int torus_progress_fn(void *data, const struct torus_progress *progress);

struct torus_port {
    const char *name; /* "+0" */
    uint64_t tx_bytes, rx_bytes;
    uint64_t tx_blocks;
    uint64_t combined_messages; /* combined messages sent through this port */
    uint32_t min_rtt_us;        /* shortest round-trip time, in microseconds; 0: unknown */
    uint64_t
        rate_bps; /* bits per second that TCP delivered when data last waited for the link; 0: unknown */
};

struct torus_node {
    uint32_t rank;
    uint64_t nanoseconds;
    uint32_t most_starts; /* most legs that were leaving this node at a time (1 if one-port) */
    uint32_t most_ends;   /* most legs that were arriving at this node at a time (1 if one-port) */
    size_t port_count;
    const struct torus_port *const *port;
    uint64_t missing_files; /* in the source folder of this node: see torus_result */
    uint64_t unused_files;
};

/* When the client of a node entered a barrier. */
struct torus_arrival {
    uint32_t rank;
    /* After the client of the first node. Nodes share no clock: this is by the clock of node 0, and a node seems to come
     * later by the time that its messages take to get there. */
    uint64_t after_nanoseconds;
};

/* The rates of links that a plan was made with. */
struct torus_link_rates {
    /* "6:-1=0.4,7:+0=0.125": what node 6 sends by port -1 goes at 0.4 of the rate of the fastest links. All that is left
     * out has the full rate. Ends in "..." if it has more than 1000 characters. */
    const char *rates;
    uint64_t full_bps; /* rate of the fastest links, in bits per second; 0: unknown */
    /* Lower bounds at these rates, and if all links had the full rate: blocks that a channel of the full rate carries one
     * after another. 0: unknown. */
    double bound, equal_bound;
};

/* The result of an operation. If it has several repetitions, all counts and the times of the nodes describe the last
 * one. */
struct torus_result {
    const char *id;
    const char *dims;
    enum torus_operation operation;
    const char *algorithm;
    enum torus_mode mode; /* TORUS_MODE_STEPPED or TORUS_MODE_STREAMING */
    enum torus_check check;
    uint32_t nodes;
    uint64_t block_bytes; /* the largest block, where sizes differ */
    uint64_t nanoseconds; /* from the start until the slowest node had its last block */
    double bound;         /* lower bound on the blocks on the busiest channel */
    double link_mbit;     /* nominal rate of a link, in Mbit/s; 0: unknown */
    uint32_t startups;    /* steps per round; TORUS_MODE_STREAMING has none: 0 */
    uint64_t
        transmission; /* blocks on the busiest channel, summed over the steps of a round; or 0 */
    uint64_t rounds;
    uint64_t blocks_delivered; /* at all nodes together */
    uint64_t bytes_delivered;
    size_t node_count;
    const struct torus_node *const *node; /* by rank; empty for a barrier, except at node 0 */
    uint32_t repeat;                      /* at least 1 */
    size_t each_count;                    /* `repeat`, or 0 if node_count is 0 */
    const uint64_t *each;                 /* nanoseconds of the slowest node, for each repetition */
    uint64_t all_nanoseconds; /* from the first start to the end of the last repetition */
    const char *without;      /* links that were down and were avoided: "link 3:+0"; "": none */
    uint32_t reroutes;        /* attempts that were withdrawn because a link or node went down */
    uint32_t replans;         /* new plans, because the rates of links had changed meanwhile */
    uint32_t damages;         /* how often data was damaged on its way and was sent again */
    uint64_t kept_bytes;      /* bytes that earlier attempts had delivered, and the last one kept */
    size_t missing_count;
    const uint32_t *missing; /* with torus_request.shrink: nodes that took no part; ascending */

    /* Counts over the source folders of all nodes: files that were missing and count as empty (with
     * torus_request.missing_ok), and files that were not sent because their names are not ranks of this torus (hidden
     * files and lost+found are not counted). */
    uint64_t missing_files;
    uint64_t unused_files;

    /* TORUS_BARRIER: how long this client waited for the other nodes, and when each node came, by rank. Nodes of
     * which this is not known are left out: all of them while the daemon of a node is older. */
    uint64_t waited_nanoseconds;
    size_t arrival_count;
    const struct torus_arrival *const *arrival;
    /* NULL: all links were taken for equal. Otherwise `bound` is the one of these. */
    const struct torus_link_rates *link_rates;
};

#define TORUS_DIGEST_SIZE 65 /* 64 hexadecimal digits and the terminating 0 */

/* Sends the daemon a schedule, in the format that 'torusctl help plan' describes, and sets `digest` to its SHA-256,
 * for torus_request.schedule. When an exchange names the schedule, all nodes read and verify it. The daemon keeps the
 * schedule until this client is closed or sends another one. Returns 0, or -1 with *error set. */
TORUS_EXPORT int torus_client_schedule(struct torus_client *client, const char *text, size_t length,
                                       char digest[TORUS_DIGEST_SIZE], struct torus_error *error);

/* The same without waiting; see torus_client_start_status(). `text` must stay in place until `done` is called.
 * `digest` is set at once. */
TORUS_EXPORT int torus_client_start_schedule(struct torus_client *client, const char *text,
                                             size_t length, char digest[TORUS_DIGEST_SIZE],
                                             torus_done_fn *done, void *data,
                                             struct torus_error *error);

/* Runs an operation on the whole torus. Waits until all nodes have committed it (or have delivered and checked the
 * data, if no files are written), or until it has failed. `progress` may be NULL; `data` is passed to it.
 *
 * Returns 0 with a *result that the caller frees with torus_result_free(), or -1 with *error set, including the id of
 * the exchange if there was one. A failed exchange leaves no output at any node.
 *
 * TORUS_ERROR_IN_DOUBT has two meanings, and the error text says which one applies:
 * - The exchange was committed, but nodes have not confirmed that their output is in place: they went down or cannot
 *   be reached, something is in the way of their output, or the timeout has passed.
 * - It is not known here whether the exchange was committed, because the connection to the daemon was lost.
 *
 * In both cases the nodes complete the exchange by themselves once they reach each other and their disks work.
 * torus_status.unconfirmed lists an exchange until all nodes have confirmed it. */
TORUS_EXPORT int torus_client_exchange(struct torus_client *client,
                                       const struct torus_request *request,
                                       torus_progress_fn *progress, void *data,
                                       struct torus_result **result, struct torus_error *error);
TORUS_EXPORT void torus_result_free(struct torus_result *result); /* NULL does nothing */

/* The same without waiting; see torus_client_start_status(). `data` is passed to `progress` and `done`. An invalid
 * request fails at once with TORUS_ERROR_USAGE. */
TORUS_EXPORT int torus_client_start_exchange(struct torus_client *client,
                                             const struct torus_request *request,
                                             torus_progress_fn *progress,
                                             struct torus_result **result, torus_done_fn *done,
                                             void *data, struct torus_error *error);

/* Waits until a client at every node has entered this barrier (MPI_Barrier). Barriers under way at the same time need
 * different names; `name` has at most 63 bytes, and NULL or "" is the default barrier. `timeout_ms` limits the wait
 * for the other nodes; 0: the daemon's default, which is days. If one node gives up, the barrier fails at all nodes.
 * `result` may be NULL. Everything else is as for torus_client_exchange(). */
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
