/* Links. A connection has two ends; each end takes frames from its router as long as its socket
 * buffer has room, and puts pieces of them on the wire, one after the other at the wire's rate.
 * Pieces arrive in the order in which they were sent, whatever happens to the latency meanwhile.
 *
 * A wire that is cut has no carrier, which the routers at its ends are told as daemon/net does: the
 * state that there is when they look, and no change that is over by then.
 *
 * A connection that no fault has touched must not be closed by either of its routers: the wires
 * remember for how long a close is the consequence of a fault (excuse()). */
#ifndef TORUSD_TESTS_SIM_NETWORK_WIRE_H
#define TORUSD_TESTS_SIM_NETWORK_WIRE_H

#include "tests/sim/internal.h"

#define PACKET 1500u

struct wire {
    enum sim_wire state;
    unsigned deaf; /* SIM_WIRE_DEAF: the end that hears nothing */
    uint64_t usual_latency, latency, rate;
    struct chance chance;
    uint64_t excused_until;
    unsigned liars; /* at its ends */
    uint64_t slow_until;
    uint64_t stalled,
        slowness;    /* for how long nothing has passed lately, added up; and with stops */
    uint32_t stalls; /* counts them */
};

struct connection_end {
    struct connection *connection;
    struct node *node;
    struct link *link; /* NULL: closed at this end */
    bool backlog;      /* the kernel has accepted it; the process is stopped and does not know */
    bool dirty;
    struct connection_end *next_dirty;
    struct outgoing_queue queue; /* the socket buffer */
    size_t queued;               /* bytes in it that have not left, */
    size_t first_done;           /* and bytes of its first frame that have */
    uint8_t *farewell;           /* what is queued, once the link is closed here */
    size_t farewell_done;
    uint64_t due;               /* when the wire, at its rate, has carried all that has left */
    struct piece *first, *last; /* on their way to this end, in order, */
    size_t coming;              /* the bytes of them, */
    unsigned held;              /* and how many have come but cannot be heard now */
    uint64_t sent;              /* bytes that have left here, */
    uint64_t taken, untaken;    /* that have come, and that were to come; to the system here */
    uint64_t acked;             /* of those sent, as far as this end knows */
    bool reset_held;
    bool sending;
    bool closing;  /* after what is queued */
    bool vanished; /* with its machine: says nothing, hears nothing */
};

struct connection {
    struct connection *next;
    struct wire *wire;
    bool excused; /* a fault has touched it: it may be closed */
    struct connection_end end[2];
};

struct piece {
    struct piece *next;
    size_t length; /* 0: nothing follows, the sender has closed it */
    uint8_t bytes[];
};

struct connection_end *end_other(struct connection_end *end);

/* The wire at a port of a node. */
struct wire *wire_at(struct sim *sim, uint32_t rank, unsigned port);

/* Gives back what is queued there. */
void end_forget_queue(struct connection_end *end);

void end_forget_dirty(struct connection_end *end);

/* Which of the two ends it is: the second one listens. */
unsigned end_index(const struct connection_end *end);

/* A fault has touched this wire: its connections may be closed, for a while. */
void wire_excuse(struct sim *sim, struct wire *w);

/* Something holds up this wire for so long: nothing passes, or a process does not run. */
void wire_slow_down(struct sim *sim, struct wire *w, uint64_t time, bool passes);

/* Nothing comes through to this end. */
bool end_is_cut_off(const struct connection_end *end);

/* What has not left of the frame that is to leave next. */
size_t end_next_frame(const struct connection_end *end);

/* That frame is dropped on the way, and would be again. */
bool end_is_too_large(const struct connection_end *end);

/* The wire can be dialled over. */
bool wire_lets_dials_pass(const struct wire *w);

/* What is on its way to this end is lost. */
void end_drop_coming(struct connection_end *end);

/* The link here is closed by its system, for this reason. */
void end_lose_link(struct connection_end *end, const char *reason);

#endif
