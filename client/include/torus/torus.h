/* libtorus: asks the torusd on this machine for its state, its links, and for collective operations
 * on the torus that it is a node of: complete exchanges (MPI_Alltoall), allgathers, broadcasts and
 * barriers.
 *
 *     struct torus_error error;
 *     struct torus_client *client = torus_client_open(NULL, &error);
 *     struct torus_request request;
 *     struct torus_result *result;
 *
 *     torus_request_init(&request);
 *     request.algorithm = "at2";
 *     request.block_bytes = 65536;
 *     if (client == NULL ||
 *         torus_client_exchange(client, &request, NULL, NULL, &result, &error) != 0)
 *         errx(1, "%s", error.text);
 *     printf("%.3f s\n", (double)result->nanoseconds / 1e9);
 *     torus_result_free(result);
 *     torus_client_close(client);
 *
 * Build with `pkg-config --cflags --libs libtorus`.
 *
 * Names
 * - Everything begins with torus_ or TORUS_; a function's name goes on with the type it works on.
 *
 * Errors and ownership
 * - Functions that can fail return 0 or -1 (or a pointer or NULL) and then fill *error, unless
 *   `error` is NULL. On failure nothing is handed over: result pointers are set to NULL.
 * - Results are allocated by the library; the caller frees each with the function named after its
 *   type. They stay valid after the client has been closed. All texts and lists in them belong to
 *   them. Texts are valid UTF-8 without control characters, whatever the daemon has sent, and are
 *   never NULL ("" if there is nothing to say).
 * - Texts and structs passed in are borrowed for the duration of the call.
 *
 * Threads and signals
 * - A client is one connection with one operation at a time. Use it from one thread at a time;
 *   different clients are independent. Only torus_client_cancel() may be called at any time, from
 *   any thread and from signal handlers.
 * - The library installs no signal handlers and raises no SIGPIPE.
 *
 * Compatibility: programs built with this header keep working with every later libtorus.so.1.
 * - Structs that the caller fills (torus_request, torus_costs) begin with struct_size, which
 *   torus_request_init() or torus_costs_init() sets. They grow at the end only; a field that the
 *   program does not know counts as zero, and zero always means the behaviour from before it was
 *   added. A library that is older than the header refuses fields that it does not know
 *   (TORUS_ERROR_USAGE), unless they are zero.
 * - Structs that the library allocates or passes to callbacks grow at the end only. Do not
 *   allocate, copy or compare them whole. Lists in them are lists of pointers for this reason.
 * - struct torus_error never changes. Enums may get further values: have a default for them. */
#ifndef TORUS_TORUS_H
#define TORUS_TORUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TORUS_EXPORT __attribute__((visibility("default")))
#else
#define TORUS_EXPORT
#endif

/* The version of the library, "0.1.0". Static. */
TORUS_EXPORT const char *torus_version(void);

/* ---- Errors ---------------------------------------------------------------------------------- */

enum torus_error_code {
    TORUS_ERROR_NONE = 0,
    TORUS_ERROR_USAGE,     /* the request is invalid (unknown algorithm, relative path...) */
    TORUS_ERROR_REFUSED,   /* it is valid, but not possible on this torus, node or folder */
    TORUS_ERROR_LINK,      /* a link or a node is down */
    TORUS_ERROR_PROTOCOL,  /* daemon and library do not understand each other */
    TORUS_ERROR_IO,        /* a system call failed, here or at a node */
    TORUS_ERROR_MEMORY,    /* out of memory here, or over the daemon's memory budget */
    TORUS_ERROR_TIMEOUT,   /* a deadline has passed */
    TORUS_ERROR_CANCELLED, /* torus_client_cancel(), or a callback that asked for it */
    TORUS_ERROR_DAMAGED,   /* data arrived that differs from what was sent */
    TORUS_ERROR_IN_DOUBT,  /* committed, but not confirmed by all nodes; or that is not known (see
                            * torus_client_exchange()); a group that may be open elsewhere */
    TORUS_ERROR_BUSY,      /* no memory or no turn for it now; it may be tried again */
    TORUS_ERROR_NO_DAEMON = 100, /* nobody listens at that socket */
    TORUS_ERROR_LOST, /* the daemon has closed the connection; nothing was to be committed */
};

struct torus_error {
    enum torus_error_code code;
    char text[480];    /* one sentence, without a full stop or line end */
    char exchange[64]; /* id of the exchange that it is about, "" if there is none yet */
};

/* A short name for a code: "refused", "in doubt", "no daemon"... Static, never NULL. */
TORUS_EXPORT const char *torus_error_name(enum torus_error_code code);

/* ---- Clients --------------------------------------------------------------------------------- */

struct torus_client;

/* Where torusd listens unless it is configured otherwise. */
#define TORUS_DEFAULT_SOCKET "/run/torusd/control.sock"

/* The socket that torus_client_open(NULL) uses: the environment variable TORUS_SOCKET if it is set
 * and not empty, else TORUS_DEFAULT_SOCKET. Static, or owned by the environment. In this path, as in
 * every other path of a socket that the library is given, "%h" stands for the host's name: with it,
 * the same setting can do on all machines of a torus. */
TORUS_EXPORT const char *torus_default_socket(void);

/* Connects to the daemon at this Unix socket; NULL stands for torus_default_socket(). Waits up to
 * five seconds if the daemon is busy.
 * Returns a client that the caller closes, or NULL with TORUS_ERROR_NO_DAEMON (no such socket,
 * nobody listens, permission denied), _USAGE (path too long), _IO or _MEMORY. */
TORUS_EXPORT struct torus_client *torus_client_open(const char *path, struct torus_error *error);

/* Closes the connection and frees the client. NULL does nothing. An operation under way is
 * abandoned: its callbacks are not called any more, and nobody is told how it ends; the daemon
 * fails an abandoned exchange at all nodes, unless it has already been decided to commit it. Must
 * not be called from a callback. */
TORUS_EXPORT void torus_client_close(struct torus_client *client);

/* How long the daemon may take for what it answers at once, in milliseconds: to accept an exchange or
 * a barrier, and for all other requests; 10000 unless set, 0 for no limit. Applies to operations
 * started afterwards. */
TORUS_EXPORT void torus_client_set_timeout(struct torus_client *client, unsigned milliseconds);

/* Asks that the operation under way end; does nothing if there is none. It then ends as the daemon
 * says: an exchange usually with TORUS_ERROR_CANCELLED, after all nodes have removed what they had
 * written; or, if it was too late, with its result or another error. The client can be used
 * afterwards. Only if the daemon does not say how it has ended within 10 seconds, the connection is
 * closed, and the operation fails with TORUS_ERROR_CANCELLED or, if files may have been committed,
 * TORUS_ERROR_IN_DOUBT.
 * Async-signal-safe; the client must not be closed meanwhile. */
TORUS_EXPORT void torus_client_cancel(struct torus_client *client);

/* Whether the client can still be used. After an error that the daemon has answered with, it can.
 * After errors that arise on this side (no reply, or one that cannot be understood), the connection
 * is closed, and every further operation fails with TORUS_ERROR_LOST. */
TORUS_EXPORT bool torus_client_is_open(const struct torus_client *client);

/* ---- Event loops ----------------------------------------------------------------------------- */

/* Each operation exists twice: torus_client_X() blocks until it has ended, and
 * torus_client_start_X() returns at once, for programs with an event loop:
 *
 *     watch torus_client_fd(client) for POLLIN, from open to close
 *     torus_client_start_status(client, &status, done, data, &error)
 *     whenever the descriptor is readable: torus_client_dispatch(client)
 *
 * The descriptor (of an epoll instance) stays the same and becomes readable whenever there is
 * something to do, be it to read, to write, a deadline or a cancellation: the event to wait for is
 * always POLLIN. */

/* Called once when the operation has ended, from torus_client_dispatch() or a blocking call of this
 * client, never from the function that started it. `error` is NULL if it has succeeded, and the
 * result that was asked for has been stored; else it is valid during the call only, and the result
 * has been set to NULL. May start the next operation; must not close the client. */
typedef void torus_done_fn(void *data, const struct torus_error *error);

/* The descriptor to watch, owned by the client. */
TORUS_EXPORT int torus_client_fd(const struct torus_client *client);

/* Does what can be done without waiting, and calls the callbacks of the operation under way.
 * Returns whether one is under way afterwards. */
TORUS_EXPORT bool torus_client_dispatch(struct torus_client *client);

/* ---- Status ---------------------------------------------------------------------------------- */

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

/* An exchange that the daemon is running or remembers. */
struct torus_activity {
    const char *id;
    const char *algorithm;
    enum torus_state state;
    const char *reason;   /* why it failed */
    uint32_t coordinator; /* rank of the node that was asked for it */
    uint64_t age_ms;      /* since it began */
};

/* An exchange that the daemon was asked for, and that is committed, but not all nodes have confirmed yet that
 * their output is in place. The daemon keeps a record of it until they have. */
struct torus_unconfirmed {
    const char *id;
    uint32_t count; /* nodes that have not confirmed, */
    size_t node_count;
    const uint32_t *nodes; /* and the ranks of the first 64 of them, rising */
    const char *reason;    /* why they have not, and what becomes of that, for people */
};

#define TORUS_RANK_NONE UINT32_MAX

/* What a node has found out of the cable of one of its ports. */
struct torus_link_fault {
    uint32_t node;
    uint32_t port;       /* as in torus_link */
    const char *code;    /* "mtu", "wrong-cable", "same-side", "loop", "duplicate-rank" */
    const char *text;    /* with what to do, for people */
    uint32_t found_node; /* what is at the other end of the cable; TORUS_RANK_NONE = not known, */
    uint32_t found_port; /* and its port, if it is */
};

/* What a user holds of what the users of a daemon share, so that none can keep others out: a user may take more
 * as long as others find some afterwards. */
struct torus_share {
    const char *resource; /* "programs": places; or bytes, if it ends in "_bytes" */
    uint32_t user;        /* uid; of what another node has asked for, there */
    uint64_t held;
    uint64_t most; /* that this user may hold now, with what it has; less, if others hold more */
    uint64_t capacity; /* for all users */
};

/* What the predictions of times are made with. */
struct torus_costs {
    size_t struct_size;      /* set by torus_costs_init() */
    double step_seconds;     /* from one end of a link to the other, for a short message */
    double message_seconds;  /* what each message on a link costs each of the two nodes */
    double bytes_per_second; /* of block data on a link, each way, while all links are busy */
};

static inline void torus_costs_init(struct torus_costs *costs)
{
    memset(costs, 0, sizeof *costs);
    costs->struct_size = sizeof *costs;
}

struct torus_calibration {
    const struct torus_costs *costs;
    uint64_t measured_at; /* seconds since 1970; 0: never, these are the default costs */
};

/* A group (torus/group.h) that a program on this node has opened, or is opening. */
struct torus_group_info {
    const char *name;
    const char *id;
    bool open; /* by programs on all nodes; else it is being opened, */
    /* and as far as this node knows, programs on these nodes ("3, 7") have not opened it. Node 0 knows
     * all of them, others at most those for which they are on the way. "": none are known */
    const char *missing;
    uint64_t calls; /* that the program has made, */
    uint64_t calls_done;
    uint64_t bytes_sent; /* and its blocks to other members and from them, with their digests */
    uint64_t bytes_received;
    uint64_t parked_bytes;   /* that have come before the program's calls */
    uint64_t reserved_bytes; /* of memory_reserved */
    uint64_t pid;            /* of the program; 0: unknown */
    /* Links that were down when it was opened, and that its calls go around, and nodes, which it leaves
     * out, for people ("link 3:+0, node 7"); "": none. */
    const char *around;
};

struct torus_status {
    const char *version; /* of the daemon */
    uint64_t pid;
    const char *dims; /* "4x8"; a size followed by m does not wrap */
    uint32_t rank;
    size_t coordinate_count;
    const uint32_t *coordinates;
    uint64_t uptime_ms;
    bool whole; /* every link of every node is up, as far as this node knows */
    size_t fault_count;
    const char *const *faults; /* what is not up, for people */
    size_t exchange_count;
    const struct torus_activity *const *exchanges; /* running ones, then the last that ended */
    size_t data_root_count;
    const char *const *data_roots; /* folders below which exchanges may read and write */
    double link_mbit;              /* nominal rate of a link, Mbit/s; 0 = unknown */
    uint64_t memory_budget;        /* bytes for blocks in transit, */
    uint64_t memory_reserved;      /* of these reserved for exchanges, */
    uint64_t memory_used;          /* and in use now */
    const struct torus_calibration *calibration;
    size_t group_count;
    const struct torus_group_info *const *groups;
    size_t unconfirmed_count;
    const struct torus_unconfirmed *const *unconfirmed; /* the youngest first, 16 at most */

    /* Versions of the protocols that the daemon speaks; 0: it does not say. Neighbours must have the same
     * first one, clients and their daemon the second, and programs with groups and their daemon the third. */
    uint32_t peer_protocol, control_protocol, program_protocol;
    size_t link_fault_count;
    const struct torus_link_fault *const *link_faults; /* of all nodes; 32 at most */
    size_t share_count;
    const struct torus_share *const
        *shares; /* of each resource, users that hold some; 16 at most */
};

/* Asks the daemon for its state. Returns 0 with a *status that the caller frees with
 * torus_status_free(), or -1 with *error set. */
TORUS_EXPORT int torus_client_status(struct torus_client *client, struct torus_status **status,
                                     struct torus_error *error);
TORUS_EXPORT void torus_status_free(struct torus_status *status); /* NULL does nothing */

/* The same without waiting. *status, which must stay in place until then, is set before `done` is
 * called. Returns 0, or -1 with *error set if another operation is under way (_USAGE), the
 * connection is closed (_LOST), or for want of memory; then `done` is not called. */
TORUS_EXPORT int torus_client_start_status(struct torus_client *client,
                                           struct torus_status **status, torus_done_fn *done,
                                           void *data, struct torus_error *error);

/* ---- Links ----------------------------------------------------------------------------------- */

enum torus_link_state {
    TORUS_LINK_UNKNOWN = 0, /* this version does not know it */
    TORUS_LINK_DIALLING,    /* this node tries to connect to the neighbour */
    TORUS_LINK_WAITING,     /* this node waits for the neighbour to connect */
    TORUS_LINK_HELLO,       /* connected; each side checks who the other one is */
    TORUS_LINK_UP,
    TORUS_LINK_HELD,    /* it flaps, and is not used before it has been quiet for a while */
    TORUS_LINK_PROBING, /* the neighbour is there; whether frames of full size pass is found out */
};

/* "up", "dialling"...; "unknown" for any other value. Static, never NULL. */
TORUS_EXPORT const char *torus_link_state_name(enum torus_link_state state);

struct torus_link {
    uint32_t port;       /* 2 * dimension for the + side, 2 * dimension + 1 for the - side */
    const char *name;    /* "+0", "-1" */
    uint32_t neighbour;  /* rank, or TORUS_RANK_NONE */
    const char *address; /* that is dialled, or listened on, as configured */
    enum torus_link_state state;
    const char *reason; /* why it is not up */
    uint64_t tx_bytes;  /* since this connection came up */
    uint64_t rx_bytes;
    uint32_t rtt_us;    /* microseconds, measured by TCP; 0 = unknown */
    uint64_t rate_bps;  /* delivery rate in bits per second, measured by TCP; 0 = unknown */
    uint64_t up_ms;     /* how long this connection has been up */
    uint32_t connects;  /* how many times the link has come up */
    const char *key;    /* id of the cluster key that the neighbour has proved to have; "" = none */
    uint32_t encrypted; /* 1: all that crosses the link is */
    uint64_t held_ms;   /* TORUS_LINK_HELD: how long it has to be quiet yet */
    const char *interface; /* of the network that it uses, or would use; "" = not known */
};

struct torus_links {
    size_t count;
    const struct torus_link *const *link;
    uint32_t heartbeat_ms; /* between two heartbeats of this node */
    uint32_t silence_ms;   /* after which it gives up a link; 0 = unknown, as the other */
};

/* Asks the daemon for its links, one for each cabled port. Returns 0 with *links that the caller
 * frees with torus_links_free(), or -1 with *error set. */
TORUS_EXPORT int torus_client_links(struct torus_client *client, struct torus_links **links,
                                    struct torus_error *error);
TORUS_EXPORT void torus_links_free(struct torus_links *links); /* NULL does nothing */

/* The same without waiting; see torus_client_start_status(). */
TORUS_EXPORT int torus_client_start_links(struct torus_client *client, struct torus_links **links,
                                          torus_done_fn *done, void *data,
                                          struct torus_error *error);

/* ---- Exchanges ------------------------------------------------------------------------------- */

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

/* ---- Predictions ----------------------------------------------------------------------------- */

/* A way to exchange blocks of a size. */
struct torus_candidate {
    const char *algorithm;
    enum torus_mode mode; /* TORUS_MODE_STEPPED or TORUS_MODE_STREAMING */
    uint32_t segments;    /* parts of a block that go different ways */
    uint64_t piece_bytes; /* of a block that travel together */
    double steps;         /* one after the other on the longest path */
    double messages;      /* that a node sends or relays, on average, while blocks are small */
    double blocks;        /* on the busiest channel, summed over steps */
    double seconds;       /* predicted */
};

struct torus_candidates {
    uint64_t block_bytes; /* that the times are for; files have sizes that are not known before */
    const struct torus_calibration *calibration;
    size_t count;
    const struct torus_candidate *const *candidate; /* the fastest first, which TORUS_AUTO takes */
};

/* Asks the daemon what TORUS_AUTO would choose from for such a TORUS_EXCHANGE; of the request,
 * block_bytes, from and mode matter. Nothing is exchanged. Returns 0 with *candidates that the
 * caller frees with torus_candidates_free(), or -1 with *error set. */
TORUS_EXPORT int torus_client_candidates(struct torus_client *client,
                                         const struct torus_request *request,
                                         struct torus_candidates **candidates,
                                         struct torus_error *error);
TORUS_EXPORT void
torus_candidates_free(struct torus_candidates *candidates); /* NULL does nothing */

/* The same without waiting; see torus_client_start_status(). */
TORUS_EXPORT int torus_client_start_candidates(struct torus_client *client,
                                               const struct torus_request *request,
                                               struct torus_candidates **candidates,
                                               torus_done_fn *done, void *data,
                                               struct torus_error *error);

/* Gives all nodes new costs, which they keep across restarts; NULL restores the default costs.
 * Returns 0 with *calibration as it is now (unless `calibration` is NULL), which the caller frees
 * with torus_calibration_free(), or -1 with *error set. */
TORUS_EXPORT int torus_client_calibrate(struct torus_client *client,
                                        const struct torus_costs *costs,
                                        struct torus_calibration **calibration,
                                        struct torus_error *error);
TORUS_EXPORT void torus_calibration_free(struct torus_calibration *calibration); /* NULL: nothing */

/* The same without waiting; see torus_client_start_status(). */
TORUS_EXPORT int torus_client_start_calibrate(struct torus_client *client,
                                              const struct torus_costs *costs,
                                              struct torus_calibration **calibration,
                                              torus_done_fn *done, void *data,
                                              struct torus_error *error);

#ifdef __cplusplus
}
#endif

#endif
