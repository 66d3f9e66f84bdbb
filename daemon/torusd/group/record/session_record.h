/* A session: the engine of a group that is open, or is being opened, at this node. */
#pragma once

#include "daemon/torusd/exchange/exchange_types.h"
#include "daemon/torusd/group/record/group_record.h"

struct part;

#define CENSUS_NAMED 8u

/* The census under way: which nodes have not made a call (census.h). There is only one at a time. The root
 * drops a question that arrives meanwhile; its node asks again, or fails its call without a list. */
struct census {
    bool running; /* `question` has arrived here, and this node has not answered it yet */
    struct peer_group_census question;
    uint32_t owed; /* ports of children that have not answered */
    uint32_t missing[CENSUS_NAMED], count, others;
    uint64_t deadline; /* root: until when it waits for answers, as router_now() */
};

struct session {
    struct engine base;
    struct session *next;
    struct groups *groups;
    struct block_events events;
    char name[GROUP_NAME_SIZE];
    bool unchecked;
    struct planner *planner; /* for the whole torus */
    /* The program here; NULL: it has left, or has not opened the group yet. */
    struct group *group;
    struct part *part; /* list of parts; the whole comes first */
    struct tree_node tree;
    /* Links that were down when the session was opened, if `damaged`. The session sends nothing there, even when
     * they are up again. */
    struct damage damage;
    bool damaged;
    bool shrunk;               /* some nodes were down, too: they are not members */
    char id[EXCHANGE_ID_SIZE]; /* id of the exchange's first attempt */
    struct census census;
    bool attached; /* an attempt of its exchange uses it */
    bool begun;    /* all members have opened it once */
    bool running, left;
    bool over; /* all members have left it */
    bool due;  /* its exchange must check it */
};

/* Notes that the session's exchange must check it, in the next groups_tick(). */
void session_is_due(struct session *s);
/* Fails the session at all members; only the first error counts. */
void session_fail(struct session *s, const struct error *e);
/* Notes that all members have left the session. */
void session_is_over(struct session *s);
