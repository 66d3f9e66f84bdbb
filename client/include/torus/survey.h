/* The state of all nodes, from any node. Part of torus/torus.h, which has the rules for errors, ownership and
 * threads. */
#ifndef TORUS_SURVEY_H
#define TORUS_SURVEY_H

#include <torus/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum torus_survey_kind {
    TORUS_SURVEY_STATE, /* status and links of each node */
    TORUS_SURVEY_HOST,  /* facts about each machine: interfaces, disks, settings of the system */
    TORUS_SURVEY_TRACE, /* what each node has recorded of the last traced exchange or group */
};

enum torus_survey_outcome {
    TORUS_SURVEY_SILENT, /* the node can be reached, and has not answered in time */
    TORUS_SURVEY_ANSWERED,
    TORUS_SURVEY_UNREACHABLE, /* the node is down, or no links lead to it */
    TORUS_SURVEY_TOO_LARGE,   /* the answer was too large, and was dropped */
    TORUS_SURVEY_UNREADABLE,  /* the answer makes no sense: the node may have another version */
};

/* Returns "silent", "answered"..., or "unknown" for any other value. Static, never NULL. */
TORUS_EXPORT const char *torus_survey_outcome_name(enum torus_survey_outcome outcome);

/* What a port did, or waited for. */
enum torus_trace_state {
    TORUS_TRACE_NOTHING,   /* nothing was left to send */
    TORUS_TRACE_LINK,      /* bytes were on the link, or waited for it */
    TORUS_TRACE_RESENDING, /* the same, and TCP sent packets again */
    TORUS_TRACE_SOURCE,    /* it waited for bytes of a file or program of the node */
    TORUS_TRACE_SINK,      /* it waited for received data to be written at the node */
    TORUS_TRACE_OTHERS,    /* it waited for blocks or steps of other nodes */
    TORUS_TRACE_ROUND,     /* it waited until all nodes had finished a round */
    TORUS_TRACE_PROGRAM,   /* it waited for programs to make a call */
    TORUS_TRACE_PROCESSOR, /* it had data to send, and the link was idle: the daemon had no processor */
};
#define TORUS_TRACE_STATES (TORUS_TRACE_PROCESSOR + 1u)

enum torus_trace_event {
    TORUS_TRACE_PHASE,          /* a: phase of the exchange that begins (torus_trace.phase) */
    TORUS_TRACE_STEP,           /* a step is over at the node; a: its number, b: the round */
    TORUS_TRACE_FINISHED_ROUND, /* b: its number */
    /* a: the operation (torus_trace.call); b: its number, and in the upper 16 bits the dimensions of the part of the
     * group that makes it (bit d: dimension d; 0: the whole group); each part numbers its calls */
    TORUS_TRACE_CALL_BEGUN,
    TORUS_TRACE_CALL_ENDED, /* the same */
    TORUS_TRACE_LINK_DOWN,  /* a: port */
    TORUS_TRACE_LINK_UP,    /* a: port */
};

/* Arrays by interval and port have intervals * ports elements, those of an interval next to each other. Times are
 * nanoseconds of the node's own clock, which begins anywhere. */
struct torus_trace {
    const char *id; /* of the exchange or group */
    uint64_t began_ns, ended_ns, interval_ns;
    bool under_way;
    uint32_t ports, intervals;
    const uint64_t *sent, *received; /* bytes, by interval and port */
    const uint32_t *queue,
        *unacked;           /* most bytes that waited in the daemon, and that were on the link */
    const uint32_t *resent; /* packets */
    const uint8_t *
        state; /* by interval, port and torus_trace_state: the part of the interval, 255 for all of it */
    const uint32_t *used,
        *delayed; /* by interval, as `state`: the daemon used a processor; it waited for a processor */
    const uint32_t *writing;  /* by interval: most bytes that waited for a disk */
    size_t events;            /* in the following arrays, in the order of time */
    const uint64_t *event_at; /* nanoseconds after began_ns */
    const uint32_t *event_kind, *event_a;
    const uint64_t *event_b;
    uint64_t all_events;       /* more than `events` if some in the middle were not kept */
    const uint32_t *neighbour; /* by port: the node there; more than any rank: none */
    const int64_t *
        clock_ahead_ns; /* by port: how far the neighbour's clock is ahead, and how wrong that may be; */
    const uint64_t *clock_error_ns;         /* 0: not known */
    const char *const *phase, *const *call; /* names by event_a */
    size_t phases, calls;
    /* What the link itself held up, by interval and port; NULL: the node has an older release, and does not tell.
     * `loaded`: the part of the interval (255: all of it) in which bytes waited for the link from begin to end;
     * `drained`: the part that began with bytes that waited for it, and in which it carried all of them; `carried`: the
     * bytes that it carried in both. So its rate is between carried / (loaded + drained) and carried / loaded.
     * `no_room`: the part in which the receiver had no room for more. */
    const uint8_t *loaded, *drained, *no_room;
    const uint64_t *carried;
};

struct torus_node_answer {
    uint32_t rank;
    enum torus_survey_outcome outcome;
    const char *host; /* name of the machine (uname -n); "": not known */
    /* TORUS_SURVEY_STATE, if the node has answered, otherwise NULL. The status has no graphs, no faults, and only
     * the link_faults that the node itself has found. */
    const struct torus_status *status;
    const struct torus_links *links;
    /* TORUS_SURVEY_STATE: how far the clock of the machine is ahead of that of the machine that was asked; the estimate
     * is wrong by at most clock_error_us (half of the time that the answer took); 0: not known. */
    int64_t clock_offset_us;
    uint64_t clock_error_us;
    /* TORUS_SURVEY_HOST, if the node has answered, otherwise "": lines "name value", ended by newlines. */
    const char *facts;
    const struct torus_trace
        *trace; /* TORUS_SURVEY_TRACE; NULL: the node has none, or has not answered */
};

struct torus_survey {
    size_t count;                                 /* of all nodes */
    const struct torus_node_answer *const *nodes; /* by rank */
    uint64_t took_us;
};

/* Asks all nodes. Waits until all nodes that can be reached have answered, at most `wait_ms` milliseconds (0: 3000);
 * nodes that have not answered by then are in the result, too. Returns 0 with *survey that the caller frees with
 * torus_survey_free(), or -1 with *error set. Whatever other nodes send, the result is well-formed; but its values are
 * what they say. */
TORUS_EXPORT int torus_client_survey(struct torus_client *client, enum torus_survey_kind kind,
                                     uint32_t wait_ms, struct torus_survey **survey,
                                     struct torus_error *error);
TORUS_EXPORT void torus_survey_free(struct torus_survey *survey); /* NULL does nothing */

/* The same without waiting; see torus_client_start_status(). */
TORUS_EXPORT int torus_client_start_survey(struct torus_client *client, enum torus_survey_kind kind,
                                           uint32_t wait_ms, struct torus_survey **survey,
                                           torus_done_fn *done, void *data,
                                           struct torus_error *error);

#ifdef __cplusplus
}
#endif

#endif
