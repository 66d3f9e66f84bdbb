/* An agent: what one node does in one attempt of a copy. It opens the attempt's group, and then all agents make the
 * same steps:
 *
 *     OPENING -> OPEN .. FINISHED (enum agent_step) -> OVER -> ENDING -> freed
 *
 * If the group fails, or the copy is cancelled, the agent is ENDING at once: work that is under way in threads is told
 * to stop, and then the trees are closed, in a thread too. */
#pragma once

#include "daemon/torusd/copy/copy.h"
#include "daemon/torusd/copy/plan.h"
#include "daemon/torusd/group/group.h"
#include "daemon/torusd/group/operations/operations.h"

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

/* An allgather of step reports (step_reports.h): first of their lengths, then of their bytes. */
struct step_report_gathering {
    enum { GATHERING_IDLE, GATHERING_LENGTHS, GATHERING_BYTES } state;
    bool called;                   /* its call has ended */
    struct program_memory *memory; /* own part, and then those of all members */
    uint8_t *report;               /* own */
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
    uint32_t initiator, attempt, rank;
    uint64_t id;
    char id_text[COPY_ID_SIZE], name[GROUP_NAME_SIZE];
    struct copy_request request;
    bool fast_digests;                 /* all nodes know them (tree_read_options) */
    const struct algorithm *algorithm; /* of the request; NULL: the group chooses */
    enum mode mode;
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
    bool is_final;        /* a retry of the copy would end in the same way */
    bool refuses;         /* its initiator is to be told why, because the group was not open */
    uint64_t compared_at; /* when it was known what is missing */
    uint64_t moved;       /* bytes of streams, in all rounds */
    struct group_carrier carried; /* what carried them; set when all were moved */
    struct link_rates links;      /* of the asked node: those that they were carried by, and how */
    uint64_t counted;             /* of them, those that are in copies_counts.bytes */

    struct tree_progress progress;
    struct work job;
    enum agent_step job_step;
    bool job_runs, job_done; /* done: that of this step; of STEP_ENDING: everything is closed */
    struct step_report_gathering gathering;
    struct moving moving;
};

/* Makes the agent advance. */
void agent_wake(struct agent *a);
/* Ends the agent early; its group has ended, or is left to the caller. */
void agent_end_early(struct agent *a, const struct error *e);
/* Ends the agent early, and its group at all members. */
void agent_fail(struct agent *a, const struct error *e);
/* The same, because this node has no memory. */
void agent_fail_for_memory(struct agent *a);
/* Makes a call of the group; its end is told as `name`. Returns 0, or -1: the agent has failed. */
int agent_call(struct agent *a, const struct group_call *call, uint64_t name);
/* Returns memory with one reference, which the caller gives back with program_memory_unref(); NULL: there is none. */
struct program_memory *copy_memory_new(uint64_t size);
/* This node's rank. */
static inline uint32_t agent_rank(const struct agent *a)
{
    return a->rank;
}

/* --- the life of an agent --- */

struct agent_setup {
    const struct copies_setup
        *set; /* copied; what it points to must outlive the agent, or agent_detach() */
    bool *due;
    struct copy *copy;
    uint32_t initiator, attempt;
    uint64_t id;
    const struct copy_request *request; /* copied */
};

/* Makes an agent, which reserves memory. Returns NULL with *e: no memory, ERROR_BUSY. */
struct agent *agent_new(const struct agent_setup *setup, struct error *e);
/* Continues as far as possible; opens the group in the first call. Not to be called from inside a function of
 * daemon/torusd/group. */
void agent_advance(struct agent *a);
/* Leaves the group when the step is STEP_OVER, and ends the agent. */
void agent_leave(struct agent *a);
/* Ends the agent: before its group is open, other nodes are not disturbed. *why becomes its error. */
void agent_give_up(struct agent *a, const struct error *why);
/* Whether the agent has ended, and everything is closed: agent_free() may be called. */
bool agent_is_gone(const struct agent *a);
/* Frees an agent that is gone. */
void agent_free(struct agent *a);
/* Ends the agent without its group and shares, which are about to be freed: its threads end later, and then it frees
 * itself. */
void agent_detach(struct agent *a);

void agent_progress(const struct agent *a, struct copy_progress *progress);

/* Writes the id of a copy for people. */
void copy_id_text(uint64_t id, char text[COPY_ID_SIZE]);

/* --- moving documents, or what is missing of streams, in rounds: while one round is sent, the next one is read, and
 * the last one is written, in threads --- */

/* Begins to move. Returns 0, or -1: the agent has failed. */
int moving_begin(struct agent *a, enum moved what);
/* Continues. Returns 1 if everything has been moved and written here; 0; or -1: the agent has failed. */
int moving_advance(struct agent *a);
/* The call of a slot has ended. */
void moving_called(struct agent *a, unsigned slot);
/* Whether works are under way. */
bool moving_works(const struct agent *a);
/* Why the next call cannot start yet. */
enum group_client_wait moving_waits(const struct agent *a);
/* Frees everything; no work may be under way. */
void moving_end(struct agent *a);

/* --- what a node does with its own trees: opens them, compares them, puts them in place, closes them --- */

/* Run in a thread. The trees and ends of the plan keep the errors. */
void copy_trees_open(struct agent *a);
void copy_trees_compare(struct agent *a);
void copy_trees_digest(struct agent *a);
void copy_trees_find_missing(struct agent *a);
void copy_trees_check(struct agent *a);
void copy_trees_finish(struct agent *a);
void copy_trees_close(struct agent *a);

/* Whether a reader or writer is open. */
bool copy_trees_are_open(const struct agent *a);
