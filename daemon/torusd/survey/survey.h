/* Surveys: a node asks all nodes for an answer, and gets the answers of those that it can reach.
 *
 * The query is flooded: each node passes it on once, when it first hears it. So it reaches every node over the links
 * that are up, and the ways that it took make a tree. An answer, in parts of at most SURVEY_PART bytes, goes back along
 * this tree. If a node or link fails meanwhile, parts are lost; therefore the initiator asks twice more, while nodes are
 * missing that can be reached, which makes other trees. When its time is over, it names the nodes that have not
 * answered.
 *
 * Surveys are for people and decide nothing, so all of it is bounded, whatever peers send: how many queries a node
 * passes on, the size of an answer, the sum of all answers that an initiator keeps (bounds.h), and the
 * parts that a node passes on for one query. What exceeds a bound is dropped. What the answers contain is not read
 * here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"
#include "proto/peer/peer_message.h"

#define SURVEY_PART 6144u
#define SURVEY_PARTS_MOST 12u
#define SURVEY_ANSWER_MOST (SURVEY_PART * SURVEY_PARTS_MOST) /* bytes of one node's answer */
#define SURVEY_TOTAL_MOST (12u * 1024u * 1024u)              /* bytes of all answers */
#define SURVEY_NODES_MOST 65536u

struct router;
struct survey;

enum survey_kind {
    SURVEY_STATE, /* links, exchanges, groups */
    SURVEY_HOST,  /* the machine: interfaces, disks, settings */
    SURVEY_TRACE, /* the last trace */
    SURVEY_KINDS
};

enum survey_outcome {
    SURVEY_SILENT, /* no answer in time */
    SURVEY_ANSWERED,
    SURVEY_UNREACHABLE, /* the node is down, or the torus is divided */
    SURVEY_TOO_LARGE    /* the answer exceeds a bound, and was dropped */
};

struct survey_node {
    enum survey_outcome outcome;
    const uint8_t *bytes; /* SURVEY_ANSWERED: the answer */
    size_t length;
    uint64_t arrived; /* nanoseconds after the survey began */
};

/* Makes this node's answers. */
struct survey_source {
    void *context;
    /* Asks for an answer: survey_tell() must follow, from inside the call or later. Not called again for this kind
     * before. */
    void (*ask)(void *context, enum survey_kind kind);
};

/* A client of this node that waits for a survey. The client owns it, sets the first two fields, and changes
 * nothing until done() or survey_forget(). */
struct survey_request {
    void *context;
    /* Called once, from survey_tick() only; `nodes` has one entry for each rank, valid during the call. */
    void (*done)(void *context, const struct survey_node *nodes, uint64_t took);
    enum survey_kind kind; /* these are for survey.c */
    uint64_t timeout;
    struct survey_request *next;
};

/* Returns NULL if there is no memory. The router must outlive the survey. */
struct survey *survey_new(struct router *router);
/* Frees *s. Requests that wait are not told. NULL does nothing. */
void survey_free(struct survey *s);

/* Sets where answers come from. Without a source, this node answers no query. */
void survey_set_source(struct survey *s, const struct survey_source *source);
/* This node's answer, copied. An answer of more than SURVEY_ANSWER_MOST bytes counts as SURVEY_TOO_LARGE. */
void survey_tell(struct survey *s, enum survey_kind kind, const uint8_t *bytes, size_t length);

/* Starts a survey, or joins the one of this kind that is under way: then its time counts, not `timeout`
 * (nanoseconds). At most two surveys of a kind begin in a second; a request may wait for that. Returns 0, and
 * request->done() follows; or -1 with *e: a node that can be reached knows no surveys (ERROR_REFUSED). */
int survey_start(struct survey *s, enum survey_kind kind, uint64_t timeout,
                 struct survey_request *request, struct error *e);
/* The client no longer waits. Does nothing if the request does not wait. */
void survey_forget(struct survey *s, struct survey_request *request);

/* Handle messages of the neighbour at `port`. Return 0, or -1 with *e: an honest node does not send that. */
int survey_query_heard(struct survey *s, unsigned port, const struct peer_survey_query *query,
                       struct error *e);
int survey_answer_heard(struct survey *s, const struct peer_survey_answer *answer, struct error *e);
/* To be called when a link somewhere has come up or gone down. */
void survey_topology(struct survey *s);

/* When survey_tick() must be called next, in nanoseconds of router_now(); or ROUTER_NEVER. */
uint64_t survey_deadline(const struct survey *s);
/* Ends surveys that are complete or whose time is over, and starts those that have waited. */
void survey_tick(struct survey *s);
