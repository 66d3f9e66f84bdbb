/* The state of a daemon and of its links. Part of torus/torus.h, which has the rules for errors, ownership and
 * threads. */
#ifndef TORUS_STATUS_H
#define TORUS_STATUS_H

#include <torus/copy.h>
#include <torus/prediction.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TORUS_RANK_NONE UINT32_MAX

/* An exchange that the daemon is running or remembers. */
struct torus_activity {
    const char *id;
    const char *algorithm;
    enum torus_state state;
    const char *reason;   /* why the exchange failed or is in doubt; "" otherwise */
    uint32_t coordinator; /* rank of the root, the node that was asked for the exchange */
    uint64_t age_ms;      /* time since the exchange began */
    uint64_t round;       /* of the current repetition, at this node */
    uint64_t rounds;
    uint64_t done_bytes;  /* delivered at this node in this repetition */
    uint64_t total_bytes; /* to be delivered at this node in a repetition; 0: unknown */
};

/* A committed exchange whose root is this daemon, and for which some nodes have not confirmed yet that their output
 * is in place. The daemon keeps a record of the exchange until all nodes have confirmed it. */
struct torus_unconfirmed {
    const char *id;
    uint32_t count; /* number of nodes that have not confirmed the exchange */
    size_t node_count;
    const uint32_t *nodes; /* ranks of the first 64 of these nodes, ascending */
    const char *reason;    /* for people: why they have not confirmed, and what happens next */
};

/* What a node has found out about the cable of one of its ports. */
struct torus_link_fault {
    uint32_t node;
    uint32_t port;       /* as in torus_link */
    const char *code;    /* "mtu", "wrong-cable", "same-side", "loop", "duplicate-rank" */
    const char *text;    /* for people: what is wrong, and what to do */
    uint32_t found_node; /* node at the other end of the cable; TORUS_RANK_NONE: not known */
    uint32_t found_port; /* port at that node, if the node is known */
};

/* How much of a resource one user of a daemon holds. All users share each resource: a user may take more as long as
 * enough stays free for other users. */
struct torus_share {
    const char *resource; /* "programs" counts programs; names that end in "_bytes" count bytes */
    uint32_t user;        /* uid; for a request from another node, the uid on that node */
    uint64_t held;
    uint64_t most;     /* how much this user may hold now; less if other users hold more */
    uint64_t capacity; /* for all users */
};

/* A group (torus/group.h) that a program on this node has opened, or is opening. */
struct torus_group_info {
    const char *name;
    const char *id;
    bool open; /* programs on all nodes have opened the group; otherwise opening is under way */
    /* Nodes ("3, 7") on which no program has opened the group yet, as far as this node knows; "": none known. Node 0
     * knows all of them; another node knows only those whose requests pass through it. */
    const char *missing;
    uint64_t calls; /* calls that the program has made */
    uint64_t calls_done;
    uint64_t bytes_sent; /* bytes of this program's blocks to other members, with digests */
    uint64_t bytes_received;
    uint64_t early_bytes;    /* bytes that arrived before the program made their calls */
    uint64_t reserved_bytes; /* the part of memory_reserved that this group holds */
    uint64_t pid;            /* process id of the program; 0: unknown */
    /* For people: the links that the calls of this group avoid, and the nodes that it leaves out ("link 3:+0, node 7");
     * "": none. */
    const char *avoids;
    /* The rates of links that the calls of this group use, as in torus_link_rates; "": all links are alike. */
    const char *rates;
    uint64_t full_bps; /* 0: unknown */
};

/* A copy of trees that this node takes part in. */
struct torus_copy_activity {
    const char *id;
    uint32_t asker;     /* rank of the node that was asked for the copy */
    const char *target; /* for people */
    enum torus_copy_phase phase;
    /* As in torus_copy_progress, at this node. */
    uint64_t files, bytes, bytes_of;
    const char *waits_for;
};

/* A graph of the network that comes from a file. */
struct torus_graph {
    size_t number_count;
    const uint32_t *edges; /* number_count nodes, two for each edge */
};

struct torus_status {
    const char *version; /* of the daemon */
    uint64_t pid;
    /* "4x8"; a size followed by m does not wrap. Other factors are "complete:4", "star:5", "tree:2^3",
     * and "graph:10:0123456789abcdef", a graph from a file (see `graphs`) by its nodes and digest. With
     * such factors there are spaces beside each x. */
    const char *dims;
    uint32_t rank;
    size_t coordinate_count;
    const uint32_t *coordinates;
    uint64_t uptime_ms;
    bool whole; /* every link of every node is up, as far as this node knows */
    size_t fault_count;
    const char *const *faults; /* for people: the links and nodes that are not up */
    size_t exchange_count;
    const struct torus_activity *const *exchanges; /* running ones, then those that ended last */
    size_t data_root_count;
    const char *const *data_roots; /* folders below which exchanges may read and write */
    double link_mbit;              /* nominal rate of a link, in Mbit/s; 0: unknown */
    uint64_t memory_budget;        /* bytes for blocks in transit */
    uint64_t memory_reserved;      /* bytes of the budget that exchanges and groups have reserved */
    uint64_t memory_used;          /* bytes of the budget that are in use now */
    const struct torus_calibration *calibration;
    size_t group_count;
    const struct torus_group_info *const *groups;
    size_t unconfirmed_count;
    const struct torus_unconfirmed *const *unconfirmed; /* youngest first, at most 16 */

    /* Versions of the protocols that the daemon speaks; 0: not known. Neighbours must have the same peer protocol, a
     * client the control protocol of its daemon, and a program with groups the program protocol of its daemon. */
    uint32_t peer_protocol, control_protocol, program_protocol;
    size_t link_fault_count;
    const struct torus_link_fault *const *link_faults; /* of all nodes, at most 32 */
    size_t share_count;
    /* For each resource, up to 16 users that hold some of it. */
    const struct torus_share *const *shares;
    size_t graph_count;
    const struct torus_graph *const *graphs; /* those in `dims` that come from a file */
    /* Minor version of the peer protocol that the daemon speaks, and the least one of all nodes that can be reached.
     * Minor versions of neighbours may differ by one. */
    uint32_t peer_minor, least_peer_minor;
    const char *host; /* name of the machine (uname -n); "": not known */
    size_t key_count;
    const char *const
        *keys; /* ids of the cluster keys that the node accepts, the preferred one first */
    size_t copy_count;
    const struct torus_copy_activity *const *copies; /* under way, at most 16 */
    const char *metrics; /* address where monitoring reads, "127.0.0.1:9101"; "": none */
};

/* Asks the daemon for its state. Returns 0 with a *status that the caller frees with
 * torus_status_free(), or -1 with *error set. */
TORUS_EXPORT int torus_client_status(struct torus_client *client, struct torus_status **status,
                                     struct torus_error *error);
TORUS_EXPORT void torus_status_free(struct torus_status *status); /* NULL does nothing */

/* The same without waiting. The pointer *status must stay in place until `done` is called, and is set before that.
 * Returns 0, or -1 with *error: another operation is under way (_USAGE), the connection is closed (_LOST), or out of
 * memory (_MEMORY). After -1, `done` is not called. */
TORUS_EXPORT int torus_client_start_status(struct torus_client *client,
                                           struct torus_status **status, torus_done_fn *done,
                                           void *data, struct torus_error *error);

/* ---- Links ----------------------------------------------------------------------------------- */

enum torus_link_state {
    TORUS_LINK_UNKNOWN = 0, /* unknown to this version of the library */
    TORUS_LINK_DIALLING,    /* this node tries to connect to the neighbour */
    TORUS_LINK_WAITING,     /* this node waits for the neighbour to connect */
    TORUS_LINK_HELLO,       /* connected; each side checks the identity of the other */
    TORUS_LINK_UP,
    TORUS_LINK_HELD,    /* the link flaps, and is not used until it has been quiet for a while */
    TORUS_LINK_PROBING, /* the neighbour is there; both sides check whether full-size frames pass */
};

/* Returns "up", "dialling"..., or "unknown" for any other value. Static, never NULL. */
TORUS_EXPORT const char *torus_link_state_name(enum torus_link_state state);

struct torus_link {
    /* 2 * dimension for the + side, 2 * dimension + 1 for the - side; if the network has factors other than rings
     * and lines, any number below 32. */
    uint32_t port;
    const char *name;    /* "+0", "-1", "0:3" */
    uint32_t neighbour;  /* rank, or TORUS_RANK_NONE */
    const char *address; /* configured address that this node dials or listens on */
    enum torus_link_state state;
    const char *reason; /* why the link is not up; "" if it is */
    uint64_t tx_bytes;  /* sent since this connection came up */
    uint64_t rx_bytes;
    uint32_t rtt_us; /* round-trip time in microseconds, measured by TCP; 0: unknown */
    uint64_t
        rate_bps; /* bits per second that TCP delivered when data last waited for the link; 0: unknown */
    uint64_t up_ms;     /* how long this connection has been up */
    uint32_t connects;  /* how many times the link has come up */
    const char *key;    /* id of the cluster key that the neighbour has proved to have; "": none */
    uint32_t encrypted; /* 1: all data on the link is encrypted */
    uint64_t held_ms;   /* TORUS_LINK_HELD: how long the link must still be quiet */
    const char *interface;  /* network interface that the link uses or would use; "": not known */
    uint64_t queue_bytes;   /* of frames that wait in the daemon for this link */
    uint64_t unacked_bytes; /* sent, and not acknowledged by the neighbour's system */
    uint32_t retransmits;   /* packets that TCP has sent again since the link came up */
    uint32_t mtu;           /* of the route to the neighbour; 0: unknown */
    /* What all connections of the port have counted in the last hour, or since the daemon started. */
    uint64_t hour_ms; /* how far back that reaches; 0: unknown, also from an older daemon */
    uint64_t hour_tx_bytes, hour_retransmits;
    uint32_t hour_connects; /* how many times the link has come up */
    /* What the link can carry, in bits per second; 0: unknown, also from an older daemon. */
    uint64_t nominal_send_bps; /* away from this node, as configured (link_mbit) */
    uint64_t nominal_receive_bps;
    uint64_t negotiated_bps; /* by the network card */
    uint64_t
        observed_bps; /* what the link carried lately while data always waited for it, with headers */
    uint64_t
        planned_bps; /* what plans use, away from this node: the smaller of what both ends state */
    const char *planned_from; /* "nominal", "negotiated", "observed", "neighbour"; "": unknown */
};

struct torus_links {
    size_t count;
    const struct torus_link *const *link;
    uint32_t heartbeat_ms; /* interval between heartbeats of this node; 0: unknown */
    uint32_t silence_ms;   /* silence after which this node closes a link; 0: unknown */
};

/* Asks the daemon for its links, one for each cabled port. Returns 0 with *links that the caller frees with
 * torus_links_free(), or -1 with *error set. */
TORUS_EXPORT int torus_client_links(struct torus_client *client, struct torus_links **links,
                                    struct torus_error *error);
TORUS_EXPORT void torus_links_free(struct torus_links *links); /* NULL does nothing */

/* The same without waiting; see torus_client_start_status(). */
TORUS_EXPORT int torus_client_start_links(struct torus_client *client, struct torus_links **links,
                                          torus_done_fn *done, void *data,
                                          struct torus_error *error);

#ifdef __cplusplus
}
#endif

#endif
