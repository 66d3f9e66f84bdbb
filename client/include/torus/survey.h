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
