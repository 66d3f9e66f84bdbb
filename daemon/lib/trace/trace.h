/* What a node records of one traced exchange or group: for each port, and for the node, what happened in equal intervals
 * of time; and a list of events. No I/O.
 *
 * A trace has a fixed size. When all intervals are in use, pairs of them are joined, so that each is twice as long: a
 * long run is recorded completely, but less finely. If there are too many events, the first and the last ones are
 * kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/lib/schedule/torus.h"
#include "daemon/lib/trace/link_load.h"

#define TRACE_INTERVALS 512u                   /* even */
#define TRACE_INTERVAL_LEAST UINT64_C(1000000) /* nanoseconds */
#define TRACE_EVENTS 512u                      /* even: first ones and last ones */
#define TRACE_ID_SIZE 48u

/* What a port does, or waits for. */
enum trace_state {
    TRACE_NOTHING,   /* nothing is left to send */
    TRACE_LINK,      /* bytes are on the link, or wait for it */
    TRACE_RESENDING, /* the same, and TCP has sent packets again */
    TRACE_SOURCE,    /* waits for bytes of a file or program of this node */
    TRACE_SINK,      /* waits for received data to be written here */
    TRACE_OTHERS,    /* waits for blocks or steps of other nodes */
    TRACE_ROUND,     /* waits until all nodes have finished a round */
    TRACE_PROGRAM,   /* waits for programs to make a call */
    TRACE_PROCESSOR, /* has frames to send, and the link is idle: waits for the processor */
    TRACE_STATES
};

enum trace_event_kind {
    TRACE_PHASE,          /* a: enum exchange_state that begins */
    TRACE_STEP,           /* a step is over here; a: its number, b: the round */
    TRACE_FINISHED_ROUND, /* b: its number */
    TRACE_CALL_BEGUN,     /* a: enum group_operation, b: TRACE_CALL() */
    TRACE_CALL_ENDED,     /* the same */
    TRACE_LINK_DOWN,      /* a: port */
    TRACE_LINK_UP,        /* a: port */
    TRACE_EVENT_KINDS
};

/* A call: the dimensions of its part (0: the whole group), and its number among the calls of the part. */
#define TRACE_CALL(part, number) ((uint64_t)(part) << 48 | ((number)&UINT64_C(0xffffffffffff)))

struct trace_event {
    uint64_t at; /* nanoseconds after the trace began */
    enum trace_event_kind kind;
    uint32_t a;
    uint64_t b;
};

/* What happened at a port in an interval. */
struct trace_port {
    uint64_t sent, received;      /* bytes */
    uint32_t queue, unacked;      /* most bytes that waited in the daemon; that were on the link */
    uint32_t resent;              /* packets */
    uint32_t state[TRACE_STATES]; /* nanoseconds / 1024 in each state */
    /* What the link itself held up (link_load.h): nanoseconds / 1024, and bytes. */
    uint32_t loaded, drained, no_room; /* each at most the interval */
    uint64_t carried;
};

/* What happened at the node. */
struct trace_node {
    uint32_t used;    /* nanoseconds / 1024 of processor time of the daemon's main thread */
    uint32_t delayed; /* that it could have run, and did not */
    uint32_t writing; /* most bytes that waited to be written */
};

/* Counters and states now. Counters rise; one that falls has begun again at 0. */
struct trace_sample {
    struct {
        uint64_t sent, received;
        uint64_t queue, unacked;
        uint32_t resent;
        enum trace_state state;
        struct link_load_sample load;
    } port[TORUS_MAX_PORTS];
    uint64_t used, delayed; /* nanoseconds; 0: not known */
    uint64_t writing;
};

struct trace {
    char id[TRACE_ID_SIZE]; /* of the exchange's first attempt */
    unsigned ports;
    uint64_t began, ended;   /* router_now(); ended 0: it goes on */
    uint64_t interval;       /* nanoseconds */
    uint32_t intervals;      /* in use */
    struct trace_port *port; /* interval * ports + port */
    struct trace_node *node; /* by interval */
    struct trace_event event[TRACE_EVENTS];
    uint64_t events;  /* that have been told */
    uint64_t sampled; /* when the last sample was taken */
    struct trace_sample last;
    struct link_load load[TORUS_MAX_PORTS];
    bool has_last;
    bool paused; /* trace_pause() */
    unsigned references;
};

/* Returns a new trace with one reference, or NULL if there is no memory. */
struct trace *trace_new(const char *id, unsigned ports, uint64_t now);
/* Adds a reference; gives one back, the last of which frees the trace. NULL does nothing. */
struct trace *trace_ref(struct trace *t);
void trace_unref(struct trace *t);

/* Adds what has happened since the last sample, whose states have lasted until now. If the sample comes much later than
 * trace_due(), the main thread has been delayed. */
void trace_take(struct trace *t, const struct trace_sample *sample, uint64_t now);
/* Until the next sample nothing is traced: no port has anything to send, and nobody expects samples. */
void trace_pause(struct trace *t);
/* Returns when the next sample is due. */
uint64_t trace_due(const struct trace *t);
/* Notes an event; `t` may be NULL. */
void trace_note(struct trace *t, uint64_t now, enum trace_event_kind kind, uint32_t a, uint64_t b);
/* Returns how many events are kept, and event number `index` of these, in the order of time. */
uint32_t trace_kept(const struct trace *t);
const struct trace_event *trace_event_at(const struct trace *t, uint32_t index);
