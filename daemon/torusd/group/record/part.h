/* The whole torus of a group, or a part of it that this node is in, as the engines of its calls see it. Each
 * part numbers its calls separately. */
#pragma once

#include "daemon/torusd/group/data/members.h"
#include "daemon/torusd/group/record/algorithm_choices.h"
#include "daemon/torusd/group/record/limits.h"
#include "daemon/torusd/group/record/session_record.h"

#define SIGNATURES 64u
/* The bits of a call's number in GroupCall.number; the others are the stage. */
#define CALL_MASK 63u

/* What is known of a call when links have gone down. If it is complete at one member, all members have made it. */
enum over {
    OVER_NOWHERE,
    OVER_SOMEWHERE,  /* perhaps not at all members; members that have finished it help the others */
    OVER_EVERYWHERE, /* all its data has arrived at all members, even if they do not know that */
};

/* What members say of their calls. The result is the largest value of each element; `first` is sent as ~number.
 * Arrays are indexed by call number. */
#define AGREEMENT_CALLS (CALL_MASK + 1u)

struct agreed {
    /* The first call that is not over, at the member that is furthest behind. */
    uint64_t first;
    uint64_t over[AGREEMENT_CALLS]; /* enum over, of this and the following calls */
    /* Bytes of each block that have arrived at all members. */
    uint64_t settled[AGREEMENT_CALLS];
};

/* An agreement under way; see agreement.h. */
struct agreement {
    struct engine *engine; /* NULL: no agreement is under way */
    struct peer_group_call mark;
    struct source source;
    struct sink sink;
    struct slab *slab; /* what this member says */
    struct agreed result;
};

struct part {
    struct part *next;
    struct session *session;
    uint32_t mask;             /* dimensions of the part; 0: the whole */
    struct engine_part *place; /* NULL: the whole */
    const struct torus *torus;
    uint32_t rank; /* this node's rank in the part */
    struct members members;
    struct damage damage; /* links of the part that are down, if `finds_routes` */
    /* Routes are found for the links that are up, whatever the table says: if links are down, and in networks
     * with other graphs than rings and lines. */
    bool finds_routes;
    const struct detour *detour; /* NULL: not found yet */
    struct limits limits;
    int8_t port[TORUS_MAX_PORTS]; /* by port of the node: port of the part, or -1 */
    struct planner *planner;
    struct reduction_trees tree;  /* for waves and short vectors */
    struct reduction_trees trees; /* for long vectors, once there has been one */
    bool has_trees;
    struct algorithm_table table;
    bool has_table;
    bool agreed; /* the members agree which calls are over; otherwise calls are suspended */
    struct agreement agreement;
    struct call *calls; /* calls that are not over, by number */
    /* Calls that are over here, but perhaps not at other members, by number. */
    struct call *kept;
    uint64_t next_number;    /* number of the next call made here */
    uint64_t internal_calls; /* internal calls made here so far */
    uint64_t everywhere;     /* OVER_EVERYWHERE, a bit for each of the latest calls, by number */
    uint32_t signature[SIGNATURES]; /* of the latest calls, by number */
    /* limits.eager of the undamaged part, so that the two fields below are the same at all members whatever
     * goes down. */
    uint64_t undamaged_eager;
    unsigned unproven;
    uint64_t unproven_bytes; /* as limits_wire_bytes() counts them */
    struct early_frame *early,
        *early_last;      /* in the order of arrival; a peer may send tens of thousands */
    uint64_t early_bytes; /* bytes of the bodies; early_heads: bytes that their heads use */
    uint64_t early_heads;
};

/* Returns the part of these dimensions (0: the whole), or NULL if it was not opened here. */
struct part *part_find(const struct session *s, uint32_t mask);
/* Finds routes that avoid what is down. Returns 1 with p->detour; 0 while they are being found (the part's
 * planner wakes); or -1 with *e. */
int part_detour(struct part *p, struct error *e);
/* Finds the trees for long vectors. Returns 1 with p->trees; 0 while they are being found; or -1 with *e. */
int part_trees(struct part *p, struct error *e);
/* Tells an engine of the part which links its session has lost. */
void part_tell_lost(const struct part *p, struct engine *engine);
