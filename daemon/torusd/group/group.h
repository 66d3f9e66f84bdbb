/* Groups at one node: a program that is a member, its calls, and what moves their data.
 *
 * A group is an exchange that can be restarted (OPERATION_GROUP). It is opened like a barrier is entered, runs
 * until all members have left it, and fails at all members with the same error. When links go down, it avoids
 * them. If a group shrinks, nodes that are down are not its members: while it is being opened, a node that goes
 * down makes the opening start again; after that, it fails the group. While a group runs, the members' calls
 * are matched by their numbers and carried out by engines. Small calls send no messages except their data.
 *
 * The files, each of which calls only those below it:
 *
 *     groups.c            what programs ask for, and what they are told
 *     session.c           the engine of a group: frames in, frames out, what its program calls
 *     relay.c             groups of some nodes: what each node passes on
 *     messages.c          messages between two members
 *     message_*.c         the same: its two sides, and on which paths their frames go
 *     late.c              late calls: which nodes have not made them, or have called differently
 *     restart.c           when links have gone down: which calls are made again
 *     calls.c             when a call starts, what it waits for, its rounds, when it is complete
 *     call_engines.c      the engines of a call, and their routes
 *     algorithm_table.c   which algorithm carries out a call of which size
 *     early_frames.c      frames that arrive before their calls
 *     call.c              one call: the table of its states, and whether all members make the same
 *     parts.c, events.c   what is known of parts, sessions and groups (state.h)
 *     blocks.c            a program's memory as the source and sink of engines
 *     operations/         what differs between collectives: a file each
 *
 * Nothing here does I/O: program/ connects programs by shared memory, the simulator by function calls. */
#pragma once

#include "daemon/torusd/exchange/exchange.h"
#include "daemon/torusd/group/operations/operations.h"

struct group; /* a group that a program has open */
/* What a client that is no program waits for before it makes a call. */
enum group_client_wait {
    GROUP_CLIENT_READS,  /* reads what it will send */
    GROUP_CLIENT_WRITES, /* writes what it has received */
    GROUP_CLIENT_OTHERS, /* other members */
};

/* The functions are never called from inside a function of group.h. */
struct group_client {
    void *context;
    /* Called once, when all members have opened the group. */
    void (*opened)(void *context, struct group *group);
    /* Called once for each call, but not after ended(); e is NULL if the call has succeeded. The group does not
     * use the call's memory any more, except for references that frames on their way hold. */
    void (*called)(void *context, uint64_t call, const struct error *e);
    /* Called once, as the last function: the group has failed, or could not be opened. Calls under way have
     * failed with the same error. *group is no longer valid. */
    void (*ended)(void *context, const struct error *e);
    /* Called when a call waits for other members, which `text` names; copy it. NULL: the program is not told. */
    void (*late)(void *context, uint64_t call, const char *text);
    /* NULL, or tells why the client makes no call now, for traces. NULL: its calls are those of a program. */
    enum group_client_wait (*waits)(void *context);
    /* Called before called() for a message from GROUP_ANY_MEMBER, with the number of the member that has sent it. NULL: the
     * client receives no such messages. It must not close the group. */
    void (*received)(void *context, uint64_t call, uint32_t from);
};

struct groups; /* the groups of one node; core_groups() */

struct group_options {
    const char *name;
    uint64_t timeout_ns;     /* for opening the group, in nanoseconds; 0: none */
    uint64_t memory_wait_ns; /* as spec.memory_wait_ns */
    bool unchecked;          /* blocks have no digests; must be the same at all members */
    const char *members;     /* NULL: all nodes, or the members, as spec.members */
    bool shrink;             /* nodes that are down are not members */
    bool wait;               /* wait for nodes that are down until the group is open */
    bool trace;              /* nodes record what they do (daemon/lib/trace) */
    uint64_t process;        /* id of the program's process, for status; 0: unknown */
    uint32_t user;           /* of the program: whose share the group takes (base/shares.h) */
};

/* Opens a group for the program at this node. Copies all arguments. Returns the group, valid until ended() or
 * group_close(), or NULL with *e. */
struct group *group_open(struct groups *groups, const struct group_options *options,
                         const struct group_client *client, struct error *e);

/* Returns, by node, whether it is no member of an open group; NULL: all nodes are members. Valid until ended(). */
const bool *group_left_out(const struct group *group);
/* Returns the number of members of an open group. Members are numbered in the order of their nodes. */
uint32_t group_members(const struct group *group);

/* Returns how many nodes have not entered the group that is being opened, and lists them as exchange_missing()
 * does. */
uint32_t group_missing(const struct group *group, char *list, size_t size);

/* Makes a call; called() reports its end under this `name`. Returns 0, or -1 with *e if an area, size, type,
 * root or part is invalid; the call then does not count, and the group continues. */
int group_call(struct group *group, const struct group_call *call, uint64_t name, struct error *e);

#define GROUP_ANY_MEMBER UINT32_MAX

/* A program's message to another member, or from it. */
struct member_message {
    bool sends;
    uint32_t peer; /* number of the other member; a receive: or GROUP_ANY_MEMBER */
    uint32_t
        part; /* with GROUP_ANY_MEMBER: the dimensions of the part of which it is one; 0: all */
    uint64_t tag;
    struct program_area area; /* the bytes; both members name the same number */
    uint64_t timeout_ns;      /* 0: none */
};

/* Begins a message; called() reports its end under this `name`: for the receiver when all bytes have arrived, for the
 * sender when the receiver has said so. Messages between two members with one tag are received in the order in which they
 * were sent. A receive from any member receives from the member whose message is known first. If the sizes of the two
 * members differ, the group fails. Returns as group_call() does. */
int group_message(struct group *group, const struct member_message *message, uint64_t name,
                  struct error *e);

/* What has carried the blocks of an exchange, allgather or broadcast. */
struct group_carrier {
    char algorithm[40]; /* "": nothing has been moved */
    enum mode mode;
    uint64_t block_bytes; /* of the largest block, with its digest */
};

/* Returns what has carried the largest blocks of the calls of an open group so far; the same at all members. Valid
 * until the next call. */
const struct group_carrier *group_carried(const struct group *group);

/* The links that the calls of an open group use, with their rates; NULL: all links are up and alike, or the group is not
 * open. Valid until the next call. */
const struct damage *group_links(const struct group *group);

/* Leaves the group. If the program has a call under way, the group fails; otherwise other members are not
 * disturbed. No function of the client is called any more. */
void group_close(struct group *group);

/* Fails the group at all members, because the program has died or broken the rules. No function of the client
 * is called any more. */
void group_abandon(struct group *group, const struct error *why);

/* A group, as status shows it. */
struct group_info {
    char name[GROUP_NAME_SIZE];
    char id[48];
    bool open; /* all members have opened it; otherwise it is being opened */
    /* Nodes that have not entered it, as far as this node knows; see exchange_missing(). */
    char missing[64];
    /* "link 3:+0, node 7": links that its calls avoid, and nodes that it leaves out; "": nothing. */
    char avoids[100];
    uint64_t process; /* as in group_options */
    bool member;      /* a program has it open at this node */
    uint64_t calls;   /* calls made here */
    uint64_t calls_done;
    uint64_t bytes_sent, bytes_received; /* of blocks for and from other members */
    uint64_t early;                      /* bytes of early frames */
    uint64_t reserved;
    struct link_rates links; /* that its calls use; without bounds */
};
/* Lists the groups of this node; writes at most `most` entries. Returns how many were written. */
size_t groups_list(const struct groups *groups, struct group_info *list, size_t most);

/* How many groups programs have at this node, and what they have done since the daemon started; for monitoring. */
struct groups_counts {
    unsigned open, opening;
    uint64_t calls, calls_done;
    uint64_t bytes_sent,
        bytes_received; /* of blocks for and from other members, in calls that are done */
};
/* Fills *counts. */
void groups_count(const struct groups *groups, struct groups_counts *counts);

/* Returns this node's rank in its torus. */
uint32_t groups_rank(const struct groups *groups);
/* Returns the torus; valid as long as the router. */
const struct torus *groups_torus(const struct groups *groups);

/* --- for core/ --- */

/* Creates the groups of a node. The router must outlive them. Returns NULL if there is no memory. */
struct groups *groups_new(struct router *router, const struct workers *workers);
/* Returns the functions that exchanges_new() needs. */
struct sessions groups_sessions(struct groups *groups);
/* Gives the groups their exchanges, before any group is opened. The exchanges are borrowed. */
void groups_attach(struct groups *groups, struct exchanges *exchanges);
/* Frees all groups; call it after exchanges_free(). Clients are told nothing. */
void groups_free(struct groups *groups);

/* Returns when groups_tick() is due (as router_now()), or ROUTER_NEVER. */
uint64_t groups_deadline(const struct groups *groups);
/* Checks late calls and sessions, and tells clients what has happened. */
void groups_tick(struct groups *groups);

/* Checks what this node knows of groups; for tests, after each event. Returns 0, or -1 with *e. */
int groups_check(const struct groups *groups, struct error *e);
