/* A session: the engine of a group that is open, or being opened, at this node. */
#ifndef TORUSD_GROUP_RECORD_SESSION_RECORD_H
#define TORUSD_GROUP_RECORD_SESSION_RECORD_H

#include "daemon/exchange/interface/session.h"
#include "daemon/group/record/group_record.h"

struct part;

#define CENSUS_NAMED 8u

/* Which nodes have not made a call (census.h). One at a time. A question that comes meanwhile is dropped at the
 * root; its asker asks again, or fails without a list. */
struct census {
    bool running; /* `question` has come down to here, and this node has not answered it yet */
    struct peer_group_census question;
    uint32_t owed; /* child ports */
    uint32_t missing[CENSUS_NAMED], count, others;
    uint64_t deadline; /* of the root: who has not answered by then is not waited for */
};

struct session {
    struct engine base;
    struct session *next;
    struct groups *all;
    struct block_events events;
    char name[GROUP_NAME_SIZE];
    bool unchecked;
    struct planner *planner; /* of the whole torus */
    struct group *group;     /* the program here; NULL: it has left, or not opened it yet */
    struct part *part;       /* the whole comes first */
    struct tree_node tree;
    struct damage
        damage; /* links that were out of order when it was opened, if `damaged`: nothing is
                           * sent there, also when they are in order again */
    bool damaged;
    bool shrunk;               /* nodes were, too: they are not members */
    char id[EXCHANGE_ID_SIZE]; /* of the exchange's first attempt */
    struct census census;
    bool attached; /* to an attempt of its exchange */
    bool begun;    /* all have opened it once */
    bool running, left;
    bool over; /* all have left it */
    bool due;  /* its exchange has to look at it */
};

/* Its exchange has to look at it, in the next groups_tick(). */
void session_is_due(struct session *s);
/* It fails, everywhere: the first error counts. */
void session_fail(struct session *s, const struct error *e);
/* All members have left it. */
void session_is_over(struct session *s);

#endif
