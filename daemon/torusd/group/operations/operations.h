/* The calls of programs, and the memory that programs lend for them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/lib/schedule/torus.h"
#include "daemon/torusd/planning/spec.h"
#include "proto/error.h"
#include "proto/group_call.h"

/* Memory of a program, which the program may change at any time. It has a reference count, because frames on
 * their way refer to it after the call and even the program have ended. */
struct program_memory {
    uint8_t *data;
    uint64_t size;
    uint32_t references;
    void (*free)(struct program_memory *memory); /* called when the last reference is given back */
};

static inline struct program_memory *program_memory_ref(struct program_memory *memory)
{
    memory->references++;
    return memory;
}

/* Gives back a reference; does nothing if `memory` is NULL. */
static inline void program_memory_unref(struct program_memory *memory)
{
    if (memory != NULL && --memory->references == 0)
        memory->free(memory);
}

/* A range of bytes in that memory. If it is empty, memory may be NULL. */
struct program_area {
    struct program_memory *memory;
    uint64_t offset, size;
};

/* A program's call. It may be invalid until group_call() has checked it. */
struct group_call {
    enum group_operation operation;
    /* Bit d: dimension d; all dimensions: the whole group; GROUP_PART: the part to open. */
    uint32_t part;
    uint32_t root; /* broadcast, reduce, gather and scatter only: number of the root */
    enum reduction_type type;
    enum reduction_operator operator;
    uint64_t size; /* elements of a vector, or bytes of a block */
    /* Arrays of the part's size, by member, as GROUP_OPERATION_LIST says; otherwise NULL. They count elements of
     * vectors, or bytes. group_call() copies them. */
    const uint64_t *send_size, *send_offset, *receive_size, *receive_offset;
    /* The areas from which the sizes and offsets above count. Broadcast uses only `receive`, also at the root. In place,
     * `send` is ignored, and the input lies in `receive`. */
    struct program_area send, receive;
    bool in_place;
    uint64_t timeout_ns; /* nanoseconds; 0: none */
    /* Nanoseconds after which the program is told which members the call waits for; 0: never. */
    uint64_t late_ns;
    struct data_kind data; /* as far as the program has told it */
    /* Carries out an exchange, the same at all members, in this mode (not MODE_OF_ALGORITHM); it must be
     * all-port, and work on the torus. NULL: what the table of the part says. Such a call does not avoid
     * links that are down, and fails. */
    const struct algorithm *algorithm;
    enum mode mode;
};

/* The members of a group or part, numbered in the order of their nodes. */

struct members {
    /* Number of members, and this node's member number; all nodes are members unless some are left out. */
    uint32_t count, own;
    uint32_t *node; /* by member: its node; NULL: the same number */
    /* By node: its member, or TORUS_NO_NODE if it is left out; NULL: the same number. */
    uint32_t *member;
};

/* Sets *m to the nodes of a torus without those that are `gone` (NULL: all nodes), at node `rank`. The caller
 * frees *m, also after an error. Returns 0, or -1 with *e. */
int members_init(struct members *m, uint32_t nodes, uint32_t rank, const bool *gone,
                 struct error *e);
/* Frees what *m holds. */
void members_free(struct members *m);

/* Returns the member at a node of the torus, or TORUS_NO_NODE. */
static inline uint32_t members_at(const struct members *m, uint32_t node)
{
    return m->member != NULL ? m->member[node] : node;
}

static inline uint32_t members_node(const struct members *m, uint32_t member)
{
    return m->node != NULL ? m->node[member] : member;
}

/* A program's call, checked and copied. */

struct checked_call {
    struct group_call call;              /* borrows the program's memory */
    const struct collective *collective; /* what call.operation does */
    uint64_t *counts;                    /* memory of the call's arrays */
    uint64_t largest; /* bytes of the largest block; if it is measured, of those at this member */
    uint64_t total;   /* bytes at this node in one direction, at most */
};

/* The range of a block in an area, in bytes. */
struct block_range {
    uint64_t offset, size;
};

/* How the data of a collective moves. */
enum routes {
    ROUTES_NONE,      /* there is no data */
    ROUTES_EXCHANGE,  /* a block for each member, and a block from each */
    ROUTES_GATHER,    /* one block for all members, on the trees of all members */
    ROUTES_BROADCAST, /* one block for all members, on the root's tree */
    /* The others combine one vector of each member. Up to TREES_BY_LENGTH, one owner has the whole vector. */
    TREES_OF_WAVES, /* on the tree of the waves */
    TREES_OF_ROOT,  /* on the root's broadcast tree, reversed */
    TREES_BY_LENGTH, /* on the tree of the waves, or, if the vector is long, a part of it on each member's tree */
    TREES_OF_ALL, /* a part on each member's tree */
};

/* Where blocks lie. */
enum block_layout {
    LAYOUT_EXCHANGE, /* a block for each member, and a block from each */
    LAYOUT_GATHER,   /* one block for all members, and a block from each member that has one */
    LAYOUT_VECTOR, /* one vector with a part for each owner; on a single tree, one owner has all of it */
};

/* What members compare besides the operation, to find out that they call differently. */
enum compared {
    COMPARES_SIZE = 1,
    COMPARES_ROOT = 2,
    COMPARES_PART = 4,
    COMPARES_TYPE = 8, /* and the operator */
    COMPARES_SIZES = 16,
};

/* What one operation does, in a file of its own: operations/NAME.c. */
struct collective {
    enum routes routes;
    enum {
        RESULT_OWN,
        RESULT_ROOT,
        RESULT_SAME
    } result;          /* each has its own; only the root has one; all have the same */
    unsigned compares; /* enum compared */
    bool in_place;     /* programs may call it in place */
    /* A member that completes it without waves knows that all members have made it. */
    bool proves;
    bool
        measured; /* no member knows the sizes of the others' blocks: the first wave tells the largest */
    bool irregular; /* blocks have different sizes, which their frames tell */
    bool shares;    /* its check sets call.send_offset, although programs do not give that array */
    /* NULL, or how very short calls are carried out, for which the number of messages matters more than that of bytes
     * (algorithm_table.allgather_reduction). */
    const struct collective *short_form;
    /* Checks all but the arrays. Sets `largest` and `total`, which are 0 before. Returns 0, or -1 with *e. */
    int (*check)(struct checked_call *c, const struct members *members, struct error *e);
    /* Return where the block for a member, or the part of an owner, lies in the area to send, and where the block
     * from a member lies in the area to receive. NULL if a call of it has no data, or only one owner. */
    struct block_range (*sent)(const struct checked_call *c, const struct members *members,
                               uint32_t destination);
    struct block_range (*got)(const struct checked_call *c, const struct members *members,
                              uint32_t origin);
    /* NULL, or the part of the arriving block that this member puts at the beginning of its area to receive. The others
     * receive all blocks into memory of the daemon first. */
    struct block_range (*kept)(const struct checked_call *c, const struct members *members);
};

/* Internal operations that no program calls: a barrier that the group inserts (GROUP_UNPROVEN_MOST), and the last call
 * of all. */
enum { GROUP_PROOF = 11, GROUP_LEAVE = 12 };

#define X(number, name, NAME, minor, arrays) extern const struct collective collective_##name;
GROUP_OPERATION_LIST(X)
#undef X
extern const struct collective collective_proof, collective_leave;

/* Returns what an operation does, also of internal ones, or NULL if there is no such operation. */
const struct collective *collective_find(uint32_t operation);
/* Returns the name of an operation, such as "alltoall"; also of internal ones. */
const char *group_operation_name(uint32_t operation);
/* Returns the minor version of the peer protocol that all nodes need for an operation. */
uint32_t group_operation_minor(uint32_t operation);

static inline bool collective_combines(const struct collective *o)
{
    return o->routes >= TREES_OF_WAVES;
}

static inline enum block_layout collective_layout(const struct collective *o)
{
    return collective_combines(o)         ? LAYOUT_VECTOR
           : o->routes == ROUTES_EXCHANGE ? LAYOUT_EXCHANGE
                                          : LAYOUT_GATHER;
}

/* Checks and copies a program's call, which may contain anything. Returns 0 with *out, which the caller frees;
 * or -1 with *e if the call is invalid. */
int checked_init(struct checked_call *out, const struct group_call *call,
                 const struct members *members, struct error *e);
/* Frees what *c holds, and gives back its references to the program's memory. */
void checked_free(struct checked_call *c);
/* Returns a signature that is equal at two members only if they make the same call; its low four bits are the
 * operation. `unchecked`: whether the group was opened unchecked. `internal`: the number of internal calls that the
 * group has made before. It is part of the signature, because members that call differently may make an internal call under
 * the number of another call. */
uint32_t checked_signature(const struct checked_call *c, uint32_t members, bool unchecked,
                           uint64_t internal);

/* --- for the files of collectives (checks.c) --- */

/* Checks that an area lies in its memory, and has `bytes` bytes. `which`: "send" or "receive". All checks return 0, or
 * -1 with *e. */
int group_check_area(const struct program_area *area, uint64_t bytes, const char *which,
                     struct error *e);
/* Checks the send area, unless the call is in place. */
int group_check_sent(const struct group_call *call, uint64_t bytes, struct error *e);
/* Checks that the blocks at these offsets lie in the area. Sets *largest, and adds to *total. */
int group_check_blocks(const uint64_t *size, const uint64_t *offset, uint32_t members,
                       const struct program_area *area, const char *which, uint64_t *largest,
                       uint64_t *total, struct error *e);
/* Sets *bytes to `count` times `size`, if that is not too much. */
int group_check_size(uint64_t size, uint64_t count, uint64_t *bytes, struct error *e);
/* Checks that the root is a member. */
int group_check_root(const struct group_call *call, uint32_t members, struct error *e);
/* Checks the type and the operator of a reduction. */
int group_check_type(const struct group_call *call, struct error *e);
/* Checks the type, the operator and the size of a reduction, and sets `total` and `largest` to the bytes of its vector.
 */
int group_check_vector(struct checked_call *c, struct error *e);

/* Returns the same block of call.size bytes for each member, at its number times the size. */
struct block_range group_block_of_member(const struct checked_call *c,
                                         const struct members *members, uint32_t member);
/* Returns where the block from a member lies, as the arrays say. */
struct block_range group_block_received(const struct checked_call *c, const struct members *members,
                                        uint32_t origin);
/* Returns a block of call.size bytes, the only one of the area. */
struct block_range group_block_only(const struct checked_call *c, const struct members *members,
                                    uint32_t member);
