/* An agent: what one node does in one attempt of a copy. It opens the attempt's group, and then all agents make the same
 * steps:
 *
 *     OPENING -> OPEN .. FINISHED (enum agent_step) -> OVER -> ENDING -> freed
 *
 * If the group fails, or the copy is cancelled, the agent is ENDING at once: work that is under way in threads is told to
 * stop, and then the trees are closed, in a thread too. */
#pragma once

#include "daemon/torusd/copy/copy.h"
#include "daemon/torusd/copy/plan.h"
#include "daemon/torusd/copy/rounds.h"
#include "daemon/torusd/group/group.h"

#define COPY_SLOTS 4u /* rounds of which a node has the data in memory */
#define COPY_PARTS 4u /* works that read or write the data of a round at the same time */

enum agent_step {
    STEP_OPENING, /* the group */
    STEP_OPEN,    /* the trees */
    STEP_TELL_OPENED,
    STEP_MOVE_MANIFESTS,
    STEP_COMPARE,
    STEP_TELL_COMPARED,
    STEP_DIGEST, /* this step and the next two only if digests are wanted */
    STEP_TELL_DIGESTED,
    STEP_MOVE_DIGESTS,
    STEP_MISSING,
    STEP_TELL_MISSING,
    STEP_MOVE_STREAMS,
    STEP_CHECK,
    STEP_TELL_CHECKED,
    STEP_FINISH,
    STEP_TELL_FINISHED,
    STEP_OVER,
    STEP_ENDING,
};

/* An allgather of records (records.h): first of their lengths, then of their bytes. */
struct record_gathering {
    enum { GATHERING_IDLE, GATHERING_LENGTHS, GATHERING_BYTES } state;
    bool called;                   /* its call has ended */
    struct program_memory *memory; /* own part, and then those of all members */
    uint8_t *record;               /* own */
    uint64_t length;
    uint64_t *lengths, *offsets; /* by member */
};

/* A part of a piece that one work reads or writes. */
struct slot_part {
    uint32_t tree, end;
    uint64_t place; /* in the document or sequence */
    uint8_t *bytes;
    uint32_t length;
    uint32_t turn; /* the how-manieth failure it was */
    struct error error;
};

/* A block in a slot's memory: a piece with its head. */
struct slot_piece {
    struct copy_piece piece;
    uint64_t at; /* of its head in the memory */
};

struct agent;
struct slot;

struct slot_work {
    struct work work;
    struct slot *slot;
    uint32_t from, to; /* parts */
    bool runs;
};

enum slot_state {
    SLOT_FREE,
    SLOT_READING, /* or waits until it may read */
    SLOT_READY,   /* to be called */
    SLOT_CALLED,
    SLOT_ARRIVED, /* to be written */
    SLOT_WRITING,
};

/* One round: its memory, and where it stands. */
struct slot {
    struct agent *agent;
    enum slot_state state;
    bool started; /* READING: works have been started */
    uint64_t round;
    struct program_memory *memory;
    struct slot_piece *sent, *received; /* by this node */
    uint32_t sends, receives;
    uint64_t send_bytes, receive_bytes,
        bytes; /* with heads; `bytes`: of the whole round, without */
    struct slot_part *part;
    uint32_t parts, parts_room;
    struct slot_work work[COPY_PARTS];
    unsigned works; /* under way */
};

/* Moves documents, or what is missing of streams. */
struct moving {
    _Atomic uint32_t failures; /* of parts */
    bool active, planned;      /* planned: all rounds have been computed */
    struct copy_rounds rounds;
    struct slot slot[COPY_SLOTS];
    uint64_t computed, called, ended; /* rounds */
    uint64_t *count[4];               /* sizes and offsets of the blocks, by member */
    uint64_t bytes;                   /* of rounds that have ended */
};

struct agent {
    struct agent *next;
    struct copies_setup set;
    bool *due; /* set if the agent is to be advanced; NULL: nobody does that any more */
    void (*woken)(struct agent *a);
    struct copy *copy; /* that was asked for at this node, or NULL */
    uint32_t asker, attempt, rank;
    uint64_t id;
    char id_text[COPY_ID_SIZE], name[GROUP_NAME_SIZE];
    struct copy_request request;
    bool fast_digests;   /* all nodes know them (tree_read_options) */
    uint64_t heard_at;   /* the last call, as router_now() */
    uint32_t call_bytes; /* of this node; reserved COPY_SLOTS times */

    enum agent_step step;
    struct group *group;
    bool asked_for_group, opened;
    uint32_t members, own;   /* own: this node's number */
    uint32_t *node, *member; /* node of a member, member of a node */
    struct copy_plan plan;
    struct error error;   /* why it ends early */
    bool is_late;         /* members may put their trees in place, whatever happens here */
    bool is_final;        /* it would end in the same way if the copy were retried */
    bool refuses;         /* its asker is to be told why, because the group was not open */
    uint64_t compared_at; /* when it was known what is missing */
    uint64_t moved;       /* bytes of streams, in all rounds */
    uint64_t counted;     /* of them, those that are in copies_counts.bytes */

    struct tree_progress progress;
    struct work job;
    enum agent_step job_step;
    bool job_runs, job_done; /* done: that of this step; of STEP_ENDING: everything is closed */
    struct record_gathering gathering;
    struct moving moving;
};

/* Makes the agent advance. */
void agent_wake(struct agent *a);
/* Ends the agent early; its group has ended, or is left to the caller. */
void agent_end_early(struct agent *a, const struct error *e);
/* Ends the agent early, and its group at all members. */
void agent_fail(struct agent *a, const struct error *e);
/* Makes a call of the group; its end is told as `name`. Returns 0, or -1: the agent has failed. */
int agent_call(struct agent *a, const struct group_call *call, uint64_t name);
/* This node's rank. */
static inline uint32_t agent_rank(const struct agent *a)
{
    return a->rank;
}
