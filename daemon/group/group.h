/* Groups at one node: a program that is a member, its calls, and what moves their data.
 *
 * A group is a standing exchange (OPERATION_GROUP): opened as a barrier is, running until all members
 * have left it, failed everywhere with the same words. It goes on around links that go down. One that shrinks
 * does without the nodes that are down, and until it is open, nodes that go down begin its opening anew; then
 * they fail it. While it runs, each member's calls are matched by their numbers and carried out by engines,
 * without any message but their data, as far as they are small; see group/internal.h.
 *
 * Nothing here does I/O: program/ brings programs by shared memory, the simulator by function calls. */
#ifndef TORUSD_GROUP_GROUP_H
#define TORUSD_GROUP_GROUP_H

#include "daemon/base/arithmetic.h"
#include "daemon/exchange/exchange.h"
#include "proto/group_call.h"

struct groups; /* of one node; core_groups() */
struct group;

/* Memory of a program, which may change under us at any time. Counted: frames on their way refer to
 * it after the call and even the program have gone. */
struct program_memory {
    uint8_t *data;
    uint64_t size;
    uint32_t references;
    void (*free)(struct program_memory *memory); /* when nobody refers to it any more */
};

static inline struct program_memory *program_memory_ref(struct program_memory *memory)
{
    memory->references++;
    return memory;
}

/* NULL does nothing. */
static inline void program_memory_unref(struct program_memory *memory)
{
    if (memory != NULL && --memory->references == 0)
        memory->free(memory);
}

/* A run of bytes in it. Without bytes: memory may be NULL. */
struct program_area {
    struct program_memory *memory;
    uint64_t offset, size;
};

/* What a program calls. Whoever passes it on has checked nothing: group_call() does. */
struct group_call {
    enum group_operation operation;
    uint32_t part; /* bit d: dimension d; all of the torus' dimensions: the whole group. For
                         * GROUP_PART: the part to be made */
    uint32_t root; /* broadcast, reduce */
    enum reduction_type type;
    enum reduction_operator operator;
    uint64_t size; /* alltoall, allgather: bytes of a block; broadcast: bytes; allreduce, reduce:
                         * elements */
    /* By member, of the part's size; else NULL. Alltoallv: all four, in bytes. Allgatherv: receive
     * only. Reduce_scatter: receive_size, in elements. Copied. */
    const uint64_t *send_size, *send_offset, *receive_size, *receive_offset;
    /* What the sizes and offsets above count from. Broadcast: the buffer is `receive`, at the root,
     * too. Reduce: only the root uses `receive`. In place (allgather, allgatherv, allreduce, and reduce
     * at its root, only; for others pass a copy): `send` is ignored, the input lies in `receive`. */
    struct program_area send, receive;
    bool in_place;
    uint64_t timeout_ns; /* 0: none */
    uint64_t late_ns;    /* after which the program is told whom the call waits for; 0: never */
};

/* The program. Its functions are never called from inside a function of this file. */
struct group_client {
    void *context;
    /* Once: all members have opened it. */
    void (*opened)(void *context, struct group *group);
    /* Each call once: e is NULL if it has succeeded. What it lent is not used any more by then, but
     * for references that frames on their way hold. Not after ended(). */
    void (*called)(void *context, uint64_t call, const struct error *e);
    /* Once, the last of all: it has failed, or could not be opened. The calls under way have failed
     * with the same error. The group is no longer good. */
    void (*ended)(void *context, const struct error *e);
    /* A call waits for other members: which, in a text to be copied. NULL: the program is not told. */
    void (*late)(void *context, uint64_t call, const char *text);
};

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
    char around[100];
    uint64_t process; /* as in group_options */
    bool member;      /* a program has it open here */
    uint64_t calls;   /* made here */
    uint64_t calls_done;
    uint64_t bytes_sent, bytes_received; /* blocks for and from other members */
    uint64_t parked;                     /* bytes that have come before their calls */
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
