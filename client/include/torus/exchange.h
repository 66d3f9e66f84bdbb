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
    TORUS_STATE_UNKNOWN = 0, /* the daemon has not said it yet, or this version does not know it */
    TORUS_STATE_WAITING,     /* for its turn: other exchanges have the memory that it needs */
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

/* How the delivered data was compared with what had been sent. If it differs, the operation fails
 * with TORUS_ERROR_DAMAGED. */
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

    /* "at2"... (broadcasts use those for allgathers); NULL, "" or TORUS_AUTO: the daemon chooses,
     * and with "cccube-best" how many packets (cccube-q5: 5). */
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

    /* So many exchanges back to back, as a program does them in a loop: with a barrier between each
     * two, and prepared once. A generated pattern only; up to TORUS_REPEAT_MAX; 0 means 1. If one
     * fails, all fail. */
    uint32_t repeat;

    bool missing_ok; /* a missing file counts as an empty block */
    /* TORUS_EXCHANGE with TORUS_AUTO only: nodes that are down, or go down before it is decided to commit,
     * are left out, instead of failing it; torus_result.missing lists them. */
    bool shrink;
    /* Any operation, not together with `shrink`: nodes that are down, or go down, are waited for, as are links that
     * it cannot go around, as long as timeout_ms allows; by default an hour each time. It then begins again;
     * repetitions that were complete count. If the daemon that was asked is restarted, the library connects to it
     * again and repeats the request, with what is left of the timeout, unless the request names a schedule. For files
     * it does so only if the daemon has said that nothing was decided, as it does when it is stopped properly; else
     * TORUS_ERROR_IN_DOUBT is the answer. From the decision to commit on, nodes that are down are waited for,
     * too: until they are back and have confirmed, or with TORUS_ERROR_IN_DOUBT until the timeout is over. */
    bool wait;
    /* With `to` only: where a folder with an old result is at `to` (nothing but files named by ranks), the new
     * one takes its place, at all nodes or none, and it is removed. Else `to` must be absent or empty. */
    bool replace;
    char reserved[4]; /* 0 */

    /* Instead of an algorithm: the digest of a schedule that torus_client_schedule() has given to the
     * daemon; NULL or "" for none. Not for TORUS_BROADCAST. */
    const char *schedule;
};

static inline void torus_request_init(struct torus_request *request)
{
    memset(request, 0, sizeof *request);
    request->struct_size = sizeof *request;
}

struct torus_progress {
    const char *exchange; /* id, "" while there is none; changes if it is begun anew */
    enum torus_state state;
    uint64_t round, rounds; /* of a repetition */
    uint64_t done_bytes;    /* delivered at the node that was asked, */
    uint64_t total_bytes;   /* of so many; 0 = not known */
    uint32_t repetition;    /* under way, counted from 0, */
    uint32_t repeat;        /* of so many; 0 before the daemon has said anything */
    uint32_t
        missing_count; /* barrier: nodes that have not entered it, as far as the node that was asked */
    const char *missing; /* knows, and their ranks: "3, 7" or, of many, "3, 7 ..."; "": not known */
    /* torus_request.wait: what is down and waited for, "node 4 (1,0)"; "": nothing. */
    const char *waits_for;
};

/* Called whenever the daemon reports, and about five times a second while it does not. The progress
 * is valid during the call only. Return 0 to go on, anything else for torus_client_cancel(). Must
 * not start operations or close the client. */
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

/* With several repetitions, all counts and the nodes' times are those of the last one. */
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
    const char *without; /* links that were down, and that it went around: "link 3:+0"; "": none */
    uint32_t reroutes;   /* times that a link or node went down meanwhile, and it began anew; */
    uint32_t damages;    /* times that something was damaged on its way, and was sent again; */
    uint64_t kept_bytes; /* that had arrived before the last time, and did not come again */
    size_t missing_count;
    const uint32_t *missing; /* torus_request.shrink: nodes that took no part; rising */

    /* Files, of the sources of all nodes: with torus_request.missing_ok, those that were not there and
     * count as empty; and those that were not sent, since their names are no ranks of this torus
     * (hidden ones and lost+found do not count). */
    uint64_t missing_files;
    uint64_t unused_files;
};

#define TORUS_DIGEST_SIZE 65 /* 64 hexadecimal digits and the terminating 0 */

/* Gives the daemon a schedule, in the format that 'torusctl help plan' describes, and sets `digest` to
 * its SHA-256, for torus_request.schedule. It is read and verified at all nodes when an exchange
 * names it. The daemon keeps it while this client is open and gives it no other one. Returns 0, or
 * -1 with *error set. */
TORUS_EXPORT int torus_client_schedule(struct torus_client *client, const char *text, size_t length,
                                       char digest[TORUS_DIGEST_SIZE], struct torus_error *error);

/* The same without waiting; see torus_client_start_status(). `text` must stay in place until `done`
 * is called; `digest` is set at once. */
TORUS_EXPORT int torus_client_start_schedule(struct torus_client *client, const char *text,
                                             size_t length, char digest[TORUS_DIGEST_SIZE],
                                             torus_done_fn *done, void *data,
                                             struct torus_error *error);

/* Runs the operation on the whole torus and waits until it has been committed at all nodes (or
 * delivered and checked, if nothing is to be kept), or has failed. `progress` may be NULL; `data`
 * is passed to it.
 *
 * Returns 0 with a *result that the caller frees with torus_result_free(), or -1 with *error set,
 * with the exchange's id if there was one. A failed exchange leaves no output at any node.
 * TORUS_ERROR_IN_DOUBT has two meanings, and the text says which. The exchange was committed, but nodes
 * have not confirmed that their output is in place: they went down or cannot be reached, something is in the
 * way there, or the timeout is over. Or it is not known here whether it was committed, as the daemon has
 * gone. The nodes settle both by themselves once they reach each other and their disks work;
 * torus_status.unconfirmed lists exchanges until all nodes have confirmed. */
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

/* Waits until every node has been asked for this barrier (MPI_Barrier). `name` is up to 63 bytes
 * long and tells barriers apart that are used at the same time; NULL or "" is the default barrier.
 * `timeout_ms` is how long to wait for the other nodes; 0 = the daemon's default, which is days.
 * If one node gives up, it fails at all of them. Everything else as for torus_client_exchange();
 * `result` may be NULL. */
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
