/* What a daemon says of itself and of its links. Part of torus/torus.h, which says what holds for all functions. */
#ifndef TORUS_STATUS_H
#define TORUS_STATUS_H

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

#ifdef __cplusplus
}
#endif

#endif
