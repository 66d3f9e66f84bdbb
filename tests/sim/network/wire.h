/* Links. A connection has two ends. Each end takes frames from its router while its socket buffer has room, and
 * puts pieces of them on the wire, one after another, at the wire's rate. Pieces arrive in the order in which
 * they were sent, even if the latency changes.
 *
 * A wire that is cut has no carrier. Its routers are told as by daemon/torusd/net: they learn the present state, and
 * miss changes that are already over.
 *
 * Routers must not close a connection without a fault: each wire remembers until when a close counts as the
 * consequence of a fault (excuse()). */
#pragma once

#include "daemon/torusd/router/observed.h"
#include "tests/sim/internal.h"

#define PACKET 1500u

struct wire {
    enum sim_wire state;
    unsigned deaf; /* SIM_WIRE_DEAF: the end that hears nothing */
    uint64_t usual_latency, latency;
    uint64_t usual_rate[2], rate[2]; /* from each end */
    struct chance chance;
    uint64_t excused_until;
    unsigned liars; /* at its ends */
    uint64_t slow_until;
    uint64_t stalled,
        slowness;    /* total time without traffic lately; and including stopped processes */
    uint32_t stalls; /* counts them */
};

struct connection_end {
    struct connection *connection;
    struct node *node;
    struct link *link; /* NULL if closed at this end */
    bool backlog;      /* the kernel has accepted it, but the stopped process does not know */
    bool dirty;
    struct connection_end *next_dirty;
    struct outgoing_queue queue; /* the socket buffer */
    size_t queued;               /* bytes in it that have not left, */
    size_t first_done;           /* and bytes of its first frame that have */
    uint8_t *farewell;           /* the queued bytes, once the link is closed here */
    size_t farewell_done;
    uint64_t due;               /* when the wire has carried everything that has left */
    struct piece *first, *last; /* on their way to this end, in order, */
    size_t coming;              /* the bytes of them, */
    unsigned held;              /* and those that have arrived but cannot be received now */
    uint64_t sent;              /* bytes that have left here, */
    uint64_t taken, untaken; /* that have been acknowledged here; that have arrived and have not */
    uint64_t acked;          /* of those sent, as far as this end knows */
    uint64_t no_room,
        no_room_since; /* time in which the other system had no room; when that began, 0: it has */
    bool reset_held;
    struct busy_rate rate;
    uint32_t emptied; /* how often the socket buffer has been empty */
    struct
    { /* for the rate: how long bytes have waited for the wire, and what was known at the last look */
        uint64_t waited, at, no_room;
        uint32_t emptied;
        bool queued;
    } waits;
    bool sending;
    bool closing;  /* after the queued bytes */
    bool vanished; /* its machine is dead: it sends and receives nothing */
};

struct connection {
    struct connection *next;
    struct wire *wire;
    bool excused; /* a fault has touched it: it may be closed */
    struct connection_end end[2];
};

struct piece {
    struct piece *next;
    size_t length; /* 0: the sender has closed the connection */
    uint8_t bytes[];
};

struct connection_end *end_other(struct connection_end *end);

/* The wire at a port of a node. */
struct wire *wire_at(struct sim *sim, uint32_t rank, unsigned port);

/* How many wires there is room for, sim->wire[]; some of them do not exist. */
size_t wire_count(const struct sim *sim);

/* The end of a wire that dials. */
void wire_dialler(const struct sim *sim, const struct wire *w, uint32_t *rank, unsigned *port);

/* Releases the queued frames. */
void end_forget_queue(struct connection_end *end);

void end_forget_dirty(struct connection_end *end);

/* Which of the two ends this is; the second one listens. */
unsigned end_index(const struct connection_end *end);

/* Call this when a fault touches a wire: for a while, its connections may be closed. */
void wire_excuse(struct sim *sim, struct wire *w);

/* Call this when a wire is held up for this time: nothing passes, or a process does not run. */
void wire_slow_down(struct sim *sim, struct wire *w, uint64_t time, bool passes);

/* Whether nothing can be received at this end. */
bool end_is_cut_off(const struct connection_end *end);

/* The bytes of the next frame that have not left. */
size_t end_next_frame(const struct connection_end *end);

/* Whether the wire drops that frame, each time that it is sent. */
bool end_is_too_large(const struct connection_end *end);

/* Whether a connection can be made over the wire. */
bool wire_lets_dials_pass(const struct wire *w);

/* The time so far in which bytes waited at this end because the other system had no room. */
uint64_t end_without_room(const struct connection_end *end);

/* Loses all bytes in transit to this end. */
void end_drop_coming(struct connection_end *end);

/* The operating system closes the link at this end, for this reason. */
void end_lose_link(struct connection_end *end, const char *reason);
