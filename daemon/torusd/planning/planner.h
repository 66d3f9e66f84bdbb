/* The plans of this node, by algorithm and mode, and the counts by which "auto" chooses. They
 * are computed off the loop when they are first asked for, and kept. */
#pragma once

#include "daemon/lib/base/work.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/passages.h"
#include "daemon/lib/schedule/plan.h"
#include "daemon/lib/schedule/predict.h"
#include "daemon/lib/schedule/reduction.h"
#include "daemon/torusd/planning/spec.h"

/* This node's part of a schedule. */
struct planned {
    struct planned *next;
    const struct algorithm *algorithm;
    enum mode mode;
    uint32_t sender; /* the only node with a block, in a broadcast; TORUS_NO_NODE: all have
                      * blocks */
    bool reduces;    /* a reduction to `sender`, against the routes of its broadcast */
    struct plan plan;
    struct passages passages;     /* for streaming, instead of `plan` */
    struct reduction_trees trees; /* for a reduction, instead of `plan` */
    uint32_t most_transit;        /* the most pieces in transit at any one node */
    bool built, transit_known;
    unsigned users;
};

/* What the planner knows about an algorithm on this torus, for "auto". */
#define PLANNER_OCTAVES 48u
struct learnt {
    uint64_t block_bytes;
    double seconds; /* 0: not known */
};
struct counted {
    struct predict_counts counts;       /* of an exchange */
    struct predict_counts gather[2][2]; /* of an allgather, a broadcast: in steps, streaming */
    bool candidate;
    struct learnt learnt[PLANNER_OCTAVES]; /* by the binary logarithm of the block's size */
};

struct planner;

/* Makes a planner; `torus` and `workers` are copied. `wake` is called on the loop when work that
 * was under way is done, or has failed. The caller gives the planner to planner_free(). Returns
 * NULL if there is no memory. */
struct planner *planner_new(const struct torus *torus, uint32_t rank, const struct workers *workers,
                            void (*wake)(void *context), void *context);
/* Frees the planner. Results of work that is under way are dropped. */
void planner_free(struct planner *p);

/* The plan for an algorithm in a mode (stepped or streaming). `sender` is TORUS_NO_NODE except
 * for broadcasts; with `anywhere`, most_transit is computed, too. Returns 1 with *out, which the
 * caller gives back with planner_put(); 0 if it is being computed (wake follows); -1 with *e. */
int planner_get(struct planner *p, const struct algorithm *a, enum mode mode, uint32_t sender,
                bool anywhere, struct planned **out, struct error *e);
/* Like planner_get(), for a reduction to `root`: its trees, (*out)->trees, are the routes of the algorithm's
 * broadcast in reverse. */
int planner_get_reduction(struct planner *p, const struct algorithm *a, uint32_t root,
                          struct planned **out, struct error *e);
/* A plan without messages, for a barrier. The caller gives it back with planner_put(). Returns
 * NULL if there is no memory. */
struct planned *planner_get_empty(struct planner *p);
/* Gives back a plan of planner_get(), planner_get_reduction() or planner_get_empty(). */
void planner_put(struct planner *p, struct planned *planned);
/* Whether so many jobs are under way that exchanges of other nodes must wait. */
bool planner_is_busy(const struct planner *p);

/* Finds routes that avoid the damage. Returns 1 with *out, which the caller gives back with
 * planner_put_detour(); 0 if they are being found (wake follows); -1 with *e. */
int planner_get_detour(struct planner *p, const struct damage *damage, const struct detour **out,
                       struct error *e);
/* Returns the same routes if they have been found, until the next call of the planner; NULL: they have not. */
const struct detour *planner_find_detour(const struct planner *p, const struct damage *damage);
/* Gives back routes. No plan for them may be in use. */
void planner_put_detour(struct planner *p, const struct detour *detour);

/* Drops everything that is kept for an algorithm that is not in the registry and is about to be freed. No
 * plan for it may be in use. */
void planner_forget(struct planner *p, const struct algorithm *a);

/* The counts of all algorithms, by index in the registry. On networks other than tori the counts of `stream` are those
 * of the routes that are found (planner_get_detour() without damage). Returns 1 with *out, which the planner owns, and
 * in which the caller may record times (`learnt`); 0 if they are being counted (wake follows); -1 with *e. */
int planner_count(struct planner *p, struct counted **out, struct error *e);

/* The counts of algorithms for exchanges on a whole network whose channels have these rates; those of `stream` are of
 * the routes that are found for them, and it is not a candidate if they are too many to be found. Only the counts for
 * the latest rates are kept. As planner_count(), but nothing may be recorded in *out. */
int planner_count_rated(struct planner *p, const struct damage *rates, const struct counted **out,
                        struct error *e);

/* Returns the same array as planner_count(), also before the counts are complete: times can be learnt without them. */
struct counted *planner_counted(struct planner *p);

/* Notes a pause between two exchanges of a session, in seconds, and returns the shortest one so far: the pause that the
 * waves alone cause. */
double planner_least_pause(struct planner *p, double pause);
