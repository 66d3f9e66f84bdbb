/* libtorus: ask a torusd on this machine for its state, its links, and complete exchanges
 * (MPI_Alltoall), allgathers and broadcasts over the torus that it is a node of.
 *
 *     struct torus_client_error error;
 *     struct torus_client *client = torus_client_open(NULL, &error);
 *     struct torus_exchange_request request = {.algorithm = "at2", .block_bytes = 65536};
 *     struct torus_exchange_result *result;
 *
 *     if (client == NULL || torus_exchange_run(client, &request, NULL, NULL, &result, &error) != 0)
 *         errx(1, "%s", error.text);
 *     printf("%.3f s\n", (double)result->nanoseconds / 1e9);
 *     torus_exchange_result_free(result);
 *     torus_client_close(client);
 *
 * Build with `pkg-config --cflags --libs libtorus`.
 *
 * Conventions
 * - Calls block. Functions that can fail return 0 or -1 (or a pointer or NULL) and then fill the
 *   error object, unless it is NULL. On failure nothing is handed over: result pointers are NULL.
 * - A client is one connection, with one call at a time on it, from any thread. Several clients are
 *   independent of each other. Only torus_client_cancel() may run beside a call.
 * - Every text that comes out of this library is valid UTF-8 without control characters, whatever
 *   the daemon had sent, and is never NULL ("" where there is nothing to say).
 * - The library installs no signal handlers and raises no SIGPIPE. */
#ifndef TORUS_TORUS_H
#define TORUS_TORUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TORUS_EXPORT __attribute__((visibility("default")))
#else
#define TORUS_EXPORT
#endif

/* Where torusd listens unless it is told otherwise. */
#define TORUS_CLIENT_SOCKET "/run/torusd/control.sock"

struct torus_client;

/* ---- Errors ---------------------------------------------------------------------------------- */

enum torus_client_error_code {
    TORUS_ERROR_NONE = 0,
    TORUS_ERROR_USAGE,     /* the request makes no sense (unknown algorithm, relative folder...) */
    TORUS_ERROR_REFUSED,   /* it does, but not on this torus, node or folder */
    TORUS_ERROR_LINK,      /* a link or a node is down */
    TORUS_ERROR_PROTOCOL,  /* daemon and library do not understand each other */
    TORUS_ERROR_IO,        /* the operating system said no, here or at a node */
    TORUS_ERROR_MEMORY,    /* no memory here, or none left within the daemon's budget */
    TORUS_ERROR_TIMEOUT,   /* a deadline has passed */
    TORUS_ERROR_CANCELLED, /* torus_client_cancel(), or a callback that said so */
    TORUS_ERROR_DAMAGED,   /* data arrived that is not what was sent */
    TORUS_ERROR_IN_DOUBT,  /* whether the exchange was committed is not known here */
    TORUS_ERROR_NO_DAEMON = 100, /* nobody listens at that socket */
    TORUS_ERROR_LOST, /* the daemon was there and has gone away; nothing was to be committed */
};

struct torus_client_error {
    enum torus_client_error_code code;
    char text[480];    /* one sentence, without a full stop or line end */
    char exchange[64]; /* id of the exchange that it is about, "" if none had been given out */
};

/* A short name for a code: "refused", "in doubt", "no daemon"... Never NULL, static. */
TORUS_EXPORT const char *torus_client_error_name(enum torus_client_error_code code);

/* ---- Connections ----------------------------------------------------------------------------- */

/* The version of the library, "0.1.0"; static. */
TORUS_EXPORT const char *torus_client_version(void);

/* The socket that torus_client_open(NULL) takes: the environment variable TORUS_SOCKET where it is
 * set and not empty, else TORUS_CLIENT_SOCKET. Static, or owned by the environment. */
TORUS_EXPORT const char *torus_client_socket(void);

/* Connects to the daemon at this Unix socket; NULL stands for torus_client_socket().
 * Returns a client that the caller closes, or NULL with TORUS_ERROR_NO_DAEMON (not there, not
 * listening, not permitted), _USAGE (a path longer than a socket address holds), _IO or _MEMORY. */
TORUS_EXPORT struct torus_client *torus_client_open(const char *path,
                                                    struct torus_client_error *error);

/* Closes the connection and frees the client; results stay valid. NULL does nothing. */
TORUS_EXPORT void torus_client_close(struct torus_client *client);

/* Makes the call that is running on this client, or else the next one, fail with
 * TORUS_ERROR_CANCELLED. May be called from a signal handler or another thread, as long as the
 * client is not closed meanwhile. The client is of no use afterwards except to be closed. */
TORUS_EXPORT void torus_client_cancel(struct torus_client *client);

/* How long calls that the daemon answers at once wait for it (all but torus_exchange_run()), in
 * milliseconds; 10000 unless set; 0 = for ever. */
TORUS_EXPORT void torus_client_set_timeout(struct torus_client *client, unsigned milliseconds);

/* After _PROTOCOL, _IO, _MEMORY, _TIMEOUT, _CANCELLED or _LOST that arose on this side, the
 * connection is closed: every further call on this client fails with TORUS_ERROR_LOST. After an
 * error that the daemon has answered with, the client can be used on. */

/* ---- Status ---------------------------------------------------------------------------------- */

/* An exchange that the daemon has at hand or remembers. */
struct torus_client_activity {
    const char *id;
    const char *algorithm;
    const char
        *state; /* preparing, ready, running, done, committing, committed, failed, in doubt */
    const char *reason; /* of a failure */
    uint32_t root;      /* rank of the node that was asked for it */
    uint64_t age_ms;    /* since it began */
};

/* What predictions are made with. */
struct torus_costs {
    double step_seconds;     /* from one end of a link to the other, for a short message */
    double message_seconds;  /* what each message over a link costs each of its ends */
    double bytes_per_second; /* of block bytes on a link, each way, while all links are busy */
};

struct torus_calibration {
    struct torus_costs costs;
    uint64_t measured_at; /* seconds since 1970; 0: never, these are the default costs */
};

struct torus_client_status {
    const char *version; /* of the daemon */
    uint64_t pid;
    const char *dims; /* "4x8"; a size followed by m does not wrap */
    uint32_t rank;
    size_t coordinate_count;
    const uint32_t *coordinates;
    uint64_t uptime_ms;
    bool whole; /* every link of every node is up, as far as this node knows */
    size_t fault_count;
    const char *const *faults; /* what is not up, in words */
    size_t exchange_count;
    const struct torus_client_activity *exchanges; /* running ones first, then the last ended */
    size_t data_root_count;
    const char *const *data_roots; /* folders below which exchanges may read and write */
    double link_mbit;              /* nominal rate of a link, Mbit/s; 0 = unknown */
    uint64_t memory_budget;        /* bytes for blocks on their way, */
    uint64_t memory_reserved;      /* of these promised to exchanges, */
    uint64_t memory_used;          /* and in use now */
    struct torus_calibration calibration;
};

/* Asks the daemon for its state. Returns 0 with a *status that the caller frees, or -1 with *status
 * NULL and *error set. */
TORUS_EXPORT int torus_client_status(struct torus_client *client,
                                     struct torus_client_status **status,
                                     struct torus_client_error *error);
TORUS_EXPORT void torus_client_status_free(struct torus_client_status *status); /* NULL is fine */

/* ---- Links ----------------------------------------------------------------------------------- */

#define TORUS_CLIENT_NO_NODE UINT32_MAX

struct torus_client_link {
    uint32_t port;       /* 2 * dimension for the + side, 2 * dimension + 1 for the - side */
    const char *name;    /* "+0", "-1" */
    uint32_t neighbour;  /* rank, or TORUS_CLIENT_NO_NODE */
    const char *address; /* dialled, or listened on */
    bool up;
    const char *state;  /* up, dialling, waiting, hello */
    const char *reason; /* why it is not up */
    uint64_t tx_bytes;  /* since this connection came up */
    uint64_t rx_bytes;
    uint32_t rtt_us;   /* microseconds; 0 = unknown */
    uint64_t rate_bps; /* delivery rate measured by TCP, bits a second; 0 = unknown */
    uint64_t up_ms;    /* how long this connection has been up */
    uint32_t connects; /* how many times the link has come up */
};

struct torus_client_links {
    size_t count;
    const struct torus_client_link *link;
};

/* Asks the daemon for its links, one for each cabled port. Ownership as for torus_client_status().
 */
TORUS_EXPORT int torus_client_links(struct torus_client *client, struct torus_client_links **links,
                                    struct torus_client_error *error);
TORUS_EXPORT void torus_client_links_free(struct torus_client_links *links); /* NULL is fine */

/* ---- Exchanges ------------------------------------------------------------------------------- */

enum torus_operation {
    TORUS_EXCHANGE = 0, /* each node has a block for each other (MPI_Alltoall) */
    TORUS_ALLGATHER,    /* each node has one block, for all (MPI_Allgather) */
    TORUS_BROADCAST,    /* one node has a block, for all (MPI_Bcast) */
    TORUS_BARRIER,      /* no blocks: done when every node has been asked for it (MPI_Barrier) */
};

#define TORUS_AUTO "auto" /* the algorithm that is predicted to be the fastest */

/* What to exchange. Zero-initialise it and set what matters; the texts stay the caller's. */
struct torus_exchange_request {
    /* "at2", for the operation: allgather's do broadcasts too; NULL, "" or TORUS_AUTO: the daemon
     * chooses. */
    const char *algorithm;
    enum torus_operation operation;
    uint32_t root;       /* TORUS_BROADCAST: rank of the node that has the block */
    const char *barrier; /* TORUS_BARRIER: its name, up to 63 bytes; NULL is one too */

    /* Either a generated pattern, which every destination verifies (from and to NULL) ... */
    uint64_t block_bytes; /* what each node sends to each other; 0 is allowed */

    /* ... or files: absolute folders as the nodes see them; %r stands for the node's rank, %% for a
     * per cent sign. Node s sends the file `from`/d to node d, which finds it as `to`/s. Other
     * operations: `from` is the file with the node's block (or a folder, and then `from`/s), which
     * every node, itself too, finds as `to`/s. */
    const char *from, *to;
    bool missing_ok; /* a missing file counts as an empty block */

    /* So many exchanges back to back, as a program in a loop would do them: a barrier between each
     * two, and none is prepared anew. Of a generated pattern, TORUS_EXCHANGE and TORUS_ALLGATHER
     * only; up to TORUS_REPEAT_MOST; 0 is 1. If one fails, the call fails. */
    uint32_t repeat;

    /* "stepped": in the steps of the algorithm; "streaming": no step waits for another
     * (TORUS_EXCHANGE by all-port algorithms only). NULL or "" = whichever suits the algorithm. */
    const char *mode;

    uint64_t timeout_ms; /* give up after so long in all; 0 = the daemon's default */
};

#define TORUS_REPEAT_MOST 1000000

struct torus_exchange_progress {
    const char *exchange;   /* id, "" while there is none */
    const char *state;      /* "" before the daemon has said anything */
    uint64_t round, rounds; /* of a repetition */
    uint64_t done_bytes;    /* delivered at the asked node, */
    uint64_t total_bytes;   /* and to be delivered there; 0 = not known */
    uint32_t repetition;    /* under way, from 0, */
    uint32_t repeat;        /* of so many; 0 before the daemon has said anything */
};

/* Called from within torus_exchange_run() whenever the daemon reports, and about five times a
 * second when it does not. The progress is valid during the call only. Return 0 to go on, anything
 * else to cancel the exchange. Must not use or close the client. */
typedef int torus_exchange_progress_fn(void *data, const struct torus_exchange_progress *progress);

struct torus_exchange_port {
    const char *name; /* "+0" */
    uint64_t tx_bytes, rx_bytes;
    uint64_t tx_blocks;
    uint64_t combined_messages; /* that left through it */
    uint32_t min_rtt_us;        /* of the connection, in microseconds; 0 = unknown */
    uint64_t rate_bps;          /* what TCP has measured at the end, bits a second; 0 = unknown */
};

struct torus_exchange_node {
    uint32_t rank;
    uint64_t nanoseconds;
    uint32_t most_starts; /* legs that started, or ended, here at the same time: at most */
    uint32_t most_ends;   /* that many (1 with one-port algorithms) */
    size_t port_count;
    const struct torus_exchange_port *port;
};

/* Of several repetitions, all that is counted and the nodes' times are those of the last one. */
struct torus_exchange_result {
    const char *id;
    const char *dims;
    const char *operation; /* "exchange", "allgather", "broadcast", "barrier" */
    const char *algorithm;
    const char *mode; /* "stepped", "streaming" */
    uint32_t nodes;
    uint64_t block_bytes; /* the largest block, where sizes differ */
    uint64_t nanoseconds; /* of the slowest node, from go to its last block; of several: the last */
    double bound;         /* lower bound on the blocks on the busiest channel */
    double link_mbit;     /* nominal rate of a link, Mbit/s; 0 = unknown */
    uint32_t startups;    /* counted, per round */
    uint64_t transmission; /* counted, per round, in blocks */
    uint64_t rounds;
    uint64_t blocks_delivered; /* at all nodes together */
    uint64_t bytes_delivered;
    bool verified; /* every block was found to be what its source had sent */
    size_t node_count;
    const struct torus_exchange_node *node; /* by rank; of a barrier, none but at node 0 */
    uint32_t repeat;                        /* at least 1 */
    size_t each_count;                      /* `repeat`; where there are no nodes, 0 */
    const uint64_t *each;                   /* the slowest node's nanoseconds, of each repetition */
    uint64_t all_nanoseconds; /* from the first go until all had done the last repetition */
};

/* Runs the operation on the whole torus and waits until it has been committed everywhere (or
 * delivered and verified, where nothing is to be kept), or has failed. `progress` may be NULL.
 *
 * Returns 0 with a *result that the caller frees, or -1 with *result NULL and *error set, with the
 * exchange's id where there was one. A failed or cancelled exchange leaves no output anywhere;
 * TORUS_ERROR_IN_DOUBT says that this is not known. Cancelling tells the daemon and waits up to
 * three seconds for its last word, which may still be that the exchange is done. */
TORUS_EXPORT int torus_exchange_run(struct torus_client *client,
                                    const struct torus_exchange_request *request,
                                    torus_exchange_progress_fn *progress, void *data,
                                    struct torus_exchange_result **result,
                                    struct torus_client_error *error);
TORUS_EXPORT void
torus_exchange_result_free(struct torus_exchange_result *result); /* NULL is fine */

/* ---- Predictions ----------------------------------------------------------------------------- */

/* A way to exchange blocks of a size. */
struct torus_candidate {
    const char *algorithm;
    const char *mode;     /* "stepped", "streaming" */
    uint32_t segments;    /* parts of a block that go different ways */
    uint64_t piece_bytes; /* of a block that travel together */
    double steps;         /* one after the other on the longest way */
    double messages;      /* that a node sends or passes on, on average, while blocks are small */
    double blocks;        /* on the busiest channel, summed over steps */
    double seconds;       /* predicted */
};

struct torus_candidates {
    uint64_t block_bytes; /* what files are taken for, whose sizes are not known before */
    struct torus_calibration calibration;
    size_t count;
    const struct torus_candidate *candidate; /* the fastest first, which TORUS_AUTO takes */
};

/* Asks the daemon what TORUS_AUTO chooses from for a TORUS_EXCHANGE like this one, of which
 * block_bytes, from and mode matter. Nothing is exchanged. Ownership as for torus_client_status().
 */
TORUS_EXPORT int torus_client_candidates(struct torus_client *client,
                                         const struct torus_exchange_request *request,
                                         struct torus_candidates **candidates,
                                         struct torus_client_error *error);
TORUS_EXPORT void
torus_client_candidates_free(struct torus_candidates *candidates); /* NULL is fine */

/* Gives new costs to all nodes, which keep them over restarts; NULL takes them back to the default
 * costs. Returns 0 with *calibration (unless NULL) as it is now, or -1 with *error set. */
TORUS_EXPORT int torus_client_calibrate(struct torus_client *client,
                                        const struct torus_costs *costs,
                                        struct torus_calibration *calibration,
                                        struct torus_client_error *error);

#ifdef __cplusplus
}
#endif

#endif
