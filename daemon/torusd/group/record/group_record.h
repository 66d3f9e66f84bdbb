/* The groups of this node, and events that groups_tick() still has to tell their programs. */
#pragma once

#include "daemon/torusd/exchange/exchange.h"
#include "daemon/torusd/group/record/group_client.h"

struct call;
struct session;

/* What the programs of this node have done in groups since the daemon has started. */
struct groups_totals {
    uint64_t calls, calls_done, bytes_sent, bytes_received;
};

struct group {
    struct group *next;
    struct groups *groups;
    struct group_client client;
    char name[GROUP_NAME_SIZE];
    uint64_t process;
    uint32_t user;
    bool unchecked, shrinks, waits, traced;
    uint64_t deadline; /* for opening the group, as router_now() */
    /* Number of members; from when the group is open until its program is told of the end. */
    uint32_t members;
    bool *gone;           /* by node: whether it is not a member; NULL: all nodes are members */
    bool retry_due;       /* the opening must be tried again */
    struct job *exchange; /* NULL while the job is being started */
    /* NULL: some members have not opened the group yet, or it has failed. */
    struct session *session;
    bool open, open_due; /* open_due: its program must be told that it is open */
    bool late_due;       /* its program must be told which members a call waits for */
    uint64_t late;
    char late_text[200];
    uint64_t *completed; /* names of complete calls that its program must be told of */
    size_t completions, room;
    uint64_t calls, calls_done, bytes_sent, bytes_received;
};

struct groups {
    struct groups_totals totals;
    struct router *router;
    struct workers workers;
    struct exchanges *exchanges;
    struct group *groups;
    struct session *sessions;
    bool due;            /* a program must be told something */
    bool closing;        /* groups_free() is under way */
    struct error broken; /* the first change of a call's state that the table forbids: a bug */
};

/* What a group uses here: less than groups_list() tells, but cheap. The texts are borrowed until the next call
 * of another function. */
struct group_use {
    const char *name, *id; /* id: "" if the group has no exchange */
    uint64_t early;        /* bytes of early frames */
    uint64_t reserved;
};
/* Lists what groups use here; writes at most `most` entries. Returns how many were written. */
size_t groups_uses(const struct groups *groups, struct group_use *list, size_t most);

/* Notes that all members have opened the group; its program is told later. */
void group_is_open(struct group *g);
/* Notes that a call is complete; its program is told later. If there is no memory for that, the session fails. */
void group_call_complete(struct group *g, const struct call *c);
/* Notes that a call waits for other members, "node 3 has not called it"; its program is told later. Returns
 * false if the program must be told of another late call first. */
bool group_call_late(struct group *g, const struct call *c, const char *whom);

/* Returns this node's group of this name that has no session yet, and gives it this session; or NULL. */
struct group *groups_join(struct groups *groups, struct session *s);
/* Detaches a session that ends from its group. */
void groups_leave(struct session *s);
