/* What this node knows of its groups, and what their programs have to be told: later, from groups_tick(). */
#ifndef TORUSD_GROUP_RECORD_GROUP_RECORD_H
#define TORUSD_GROUP_RECORD_GROUP_RECORD_H

#include "daemon/exchange/exchange.h"
#include "daemon/group/record/group_client.h"

struct call;
struct session;

struct group {
    struct group *next;
    struct groups *all;
    struct group_client client;
    char name[GROUP_NAME_SIZE];
    uint64_t process;
    uint32_t user;
    bool unchecked, shrinks, waits;
    uint64_t deadline;    /* of opening it */
    uint32_t members;     /* once it is open, until its program has been told of its end; */
    bool *gone;           /* and by node, which are not, if not all are. NULL: it does not shrink */
    bool retry_due;       /* its opening has to be tried again */
    struct job *exchange; /* NULL while it is being started */
    struct session *session; /* NULL: not open by all yet, or failed */
    bool open, open_due;     /* the program has to be told that */
    bool late_due;           /* the program has to be told whom this call waits for */
    uint64_t late;
    char late_text[200];
    uint64_t *completed; /* names of calls that it has to be told of */
    size_t completions, room;
    uint64_t calls, calls_done, bytes_sent, bytes_received;
};

struct groups {
    struct router *router;
    struct workers workers;
    struct exchanges *exchanges;
    struct group *groups;
    struct session *sessions;
    bool due;            /* somebody has to be told something */
    bool closing;        /* nothing goes on any more */
    struct error broken; /* the first change of a call's state that its table forbids: a bug */
};

/* What a group takes here: less than groups_list() tells, and at no cost. The texts are borrowed, until the next
 * call of another function. */
struct group_use {
    const char *name, *id; /* id: "" without an exchange */
    uint64_t early;        /* bytes that have come before their calls */
    uint64_t reserved;
};
size_t groups_uses(const struct groups *all, struct group_use *list, size_t most);

/* All members have opened it: its program is told later. */
void group_is_open(struct group *g);
/* A call is complete: its program is told later. Without memory for that the session fails. */
void group_call_complete(struct group *g, const struct call *c);
/* A call waits for others, "node 3 has not called it": its program is told later. Returns false if it is to be told
 * of another one first. */
bool group_call_late(struct group *g, const struct call *c, const char *whom);

/* The member of this name here that has no session yet, which it gets; or NULL. */
struct group *groups_join(struct groups *all, struct session *s);
/* The session ends. */
void groups_part_with(struct session *s);

#endif
