/* The whole of a group's torus, or a part of it that this node is in, as the engines of its calls see it. Its
 * calls have an order of their own. */
#ifndef TORUSD_GROUP_RECORD_PART_H
#define TORUSD_GROUP_RECORD_PART_H

#include "daemon/group/data/members.h"
#include "daemon/group/record/algorithm_choices.h"
#include "daemon/group/record/limits.h"
#include "daemon/group/record/session_record.h"

#define SIGNATURES 64u
#define CALL_MASK 63u /* of a call's number in GroupCall, beside the stage */

/* Of one call, as it was when links went down. What has been completed anywhere has been called by all; */
enum over {
    OVER_NOWHERE,
    OVER_SOMEWHERE,  /* perhaps not everywhere: members that are through with it help the others */
    OVER_EVERYWHERE, /* all its data is where it belongs, whether its members know it or not */
};

/* What members say, element by element the largest, the first as ~number; the others by number. */
#define AGREEMENT_CALLS (CALL_MASK + 1u)

struct agreed {
    uint64_t first;                 /* call that is not over, of the member that is least far */
    uint64_t over[AGREEMENT_CALLS]; /* enum over; of this and the following ones */
    uint64_t
        settled[AGREEMENT_CALLS]; /* bytes of each block that are where they belong, everywhere */
};

/* See agreement.h. */
struct agreement {
    struct engine *engine; /* NULL: none is under way */
    struct peer_group_call mark;
    struct source source;
    struct sink sink;
    struct slab *slab; /* what this member says */
    struct agreed result;
};

struct part {
    struct part *next;
    struct session *session;
    uint32_t mask;             /* dimensions; 0: the whole */
    struct engine_part *place; /* NULL: the whole */
    const struct torus *torus;
    uint32_t rank; /* this node's in it */
    struct members members;
    struct damage damage; /* links of it that are out of order, if `damaged`: then its calls take */
    bool damaged;         /* routes around these, whatever the table says */
    const struct detour *detour; /* NULL: not found yet */
    struct limits limits;
    int8_t port[TORUS_MAX_PORTS]; /* its own by the node's, or -1 */
    struct planner *planner;
    struct reduction_trees tree;  /* of waves and short vectors */
    struct reduction_trees trees; /* of long vectors, once there has been one */
    bool has_trees;
    struct decisions decisions;
    bool decided;
    bool agreed; /* on what is over; else its calls are suspended */
    struct agreement agreement;
    struct call *calls;      /* not over, by number */
    struct call *kept;       /* over here, perhaps not elsewhere; by number */
    uint64_t next_number;    /* of the next call made here */
    uint64_t internal_calls; /* made here so far: the group's own, which no program waits for */
    uint64_t everywhere;     /* of the last ones, by number, a bit: OVER_EVERYWHERE */
    uint32_t signature[SIGNATURES]; /* of the last ones, by number */
    uint64_t first_eager; /* limits.eager of a part that is whole: for the two below, which count
                           * the same at all members whatever goes down */
    unsigned unproven;
    uint64_t unproven_bytes; /* as limits_wire_bytes() */
    struct early_frame *early,
        *early_last;      /* in the order of arrival; a peer may send tens of thousands */
    uint64_t early_bytes; /* of bodies; and what their heads take */
    uint64_t early_heads;
};

/* The part of these dimensions (0: the whole), or NULL: it has not been opened here. */
struct part *part_find(const struct session *s, uint32_t mask);
/* The routes around what is out of order. Returns 1 with p->detour; 0 if they are being found (the
 * part's planner wakes); or -1 with *e. */
int part_detour(struct part *p, struct error *e);
/* The trees that long vectors are combined on. Returns 1 with p->trees; 0 or -1 as part_detour(). */
int part_trees(struct part *p, struct error *e);
/* Every engine of a part is told which links its session has lost. */
void part_tell_lost(const struct part *p, struct engine *engine);

#endif
