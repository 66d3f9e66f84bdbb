/* Groups at one node: a program that is a member, its calls, and what moves their data.
 *
 * A group is an exchange that can be restarted (OPERATION_GROUP): it is opened as a barrier is, runs until all
 * members have left it, and fails everywhere with the same words. When links go down, it goes on around them. If a
 * group shrinks, nodes that are down are not members of it; until it is open, its opening is tried again when a
 * node goes down, and then that fails it. While it runs, each member's calls are matched by their numbers and
 * carried out by engines; small ones without any message but their data.
 *
 * The folders, each of which calls only those below it:
 *
 *     session/  the engine of a group: frames in, frames out, what its program does
 *     late/     calls that take long: who has not made them, who has called otherwise
 *     restart/  when links have gone down: which calls are made again
 *     calls/    when a call starts, what it waits for, its engines, when it is complete
 *     record/   what is known of groups, sessions, parts and calls; the table of a call's states
 *     data/     what a program calls, and its memory as the source and sink of engines
 *
 * Nothing here does I/O: program/ brings programs by shared memory, the simulator by function calls. */
#ifndef TORUSD_GROUP_GROUP_H
#define TORUSD_GROUP_GROUP_H

#include "daemon/exchange/exchange.h"
#include "daemon/group/data/group_call.h"
#include "daemon/group/record/group_client.h"

struct groups; /* of one node; core_groups() */

struct group_options {
    const char *name;
    uint64_t timeout_ns; /* for opening; 0: none */
    bool unchecked;      /* without digests; the same at all members */
    bool shrink;         /* nodes that are down are left out: the others are its members */
    bool wait;           /* nodes that are down are waited for, until it is open */
    uint64_t process;    /* of the program, to be shown; 0: unknown */
    uint32_t user;       /* of the program: whose share it takes (base/shares.h) */
};

/* A program opens the group at this node. Returns it, good until ended() or group_close(); or NULL
 * with *e. All is copied. */
struct group *group_open(struct groups *all, const struct group_options *options,
                         const struct group_client *client, struct error *e);

/* Of a group that is open, until ended(): by node, whether it is left out (borrowed), or NULL if all
 * nodes are members; and how many are. Members are numbered in the order of their nodes. */
const bool *group_gone(const struct group *group);
uint32_t group_members(const struct group *group);

/* Of a group that is being opened: nodes where it has not been, as exchange_missing() has them. */
uint32_t group_missing(const struct group *group, char *list, size_t size);

/* The program calls. `call` is its name for it, in called(). Returns 0, or -1 with *e if it cannot be
 * (the group goes on, the call does not count): an area, size, type, root or part out of range. */
int group_call(struct group *group, const struct group_call *call, uint64_t name, struct error *e);

/* The program leaves: nobody is disturbed if it has no call under way; else the group fails. No
 * function of its client is called any more. */
void group_close(struct group *group);

/* The program has died, or broken the rules: the group fails everywhere. The same. */
void group_abandon(struct group *group, const struct error *why);

/* What status shows. */
struct group_info {
    char name[GROUP_NAME_SIZE];
    char id[48];
    bool open;        /* by all members; else it is being opened, */
    char missing[64]; /* and as far as this node knows these have not; see exchange_missing() */
    /* "link 3:+0, node 7": links that its calls go around, nodes that it leaves out; "": the torus was
     * whole. */
    char avoids[100];
    uint64_t process; /* as in group_options */
    bool member;      /* a program has it open here */
    uint64_t calls;   /* made here */
    uint64_t calls_done;
    uint64_t bytes_sent, bytes_received; /* blocks for and from other members */
    uint64_t early;                      /* bytes that have come before their calls */
    uint64_t reserved;
};
size_t groups_list(const struct groups *all, struct group_info *list, size_t most);

/* This node's rank in the torus that its group is of, and that torus: for ever. */
uint32_t groups_rank(const struct groups *all);
const struct torus *groups_torus(const struct groups *all);

/* Whether a group of this name is open, or being opened, by a program at this node. */
bool groups_has(const struct groups *all, const char *name);

/* --- for core/ --- */

/* Returns NULL if there is no memory. The router must outlive it. */
struct groups *groups_new(struct router *router, const struct workers *workers);
/* To be given to the exchanges when they are made, and they to the groups before any is opened. */
struct sessions groups_sessions(struct groups *all);
void groups_attach(struct groups *all, struct exchanges *exchanges);
/* After the exchanges. Clients are told nothing. */
void groups_free(struct groups *all);

/* When groups_tick() is due (as router_now()), or ROUTER_NEVER. Clients are told there. */
uint64_t groups_deadline(const struct groups *all);
void groups_tick(struct groups *all);

/* For tests, after each event: whether what this node has of groups can be so. Returns 0, or -1 with *e. */
int groups_check(const struct groups *all, struct error *e);

#endif
