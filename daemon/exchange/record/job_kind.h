/* The three kinds of jobs: exchanges (allgathers and broadcasts are exchanges, too), barriers and groups. What differs
 * between them is a row of one table. Everything else asks that row, and does not look at the operation. */
#ifndef TORUSD_EXCHANGE_RECORD_JOB_KIND_H
#define TORUSD_EXCHANGE_RECORD_JOB_KIND_H

#include "daemon/base/shares.h"
#include "daemon/exchange/record/id.h"
#include "daemon/planning/spec.h"

struct exchanges;

struct job_kind {
    /* A client enters it at every node, and it begins when all have; else one client asks for it, at its root. */
    bool is_entered;
    /* Nodes move blocks; else there is nothing but waves. */
    bool has_blocks;
    /* Once all have entered it, it stays open, and its engine is a session (session.h). Its root restarts it under
     * another id, and the session stays. */
    bool has_session;
    /* Its root may withdraw an attempt that runs, and begin another one: no client hears that it is over but from its
     * root. The clients of a barrier hear that by `go`. */
    bool retries_running;
    /* If it shrinks, the first node that is left is its root. */
    bool first_left_leads;
    /* Only so many have a place at a time: of one user, of one root, of all. */
    bool takes_place;
    enum share share; /* of memory, that it takes */
    /* Bytes of that. NULL: it depends on its blocks. */
    uint64_t (*memory)(const struct exchanges *all);
    /* The job is over here, whose first attempt had this id. NULL: nothing is left of it. */
    void (*forget)(struct exchanges *all, const struct exchange_id *first);
};

const struct job_kind *kind_of_operation(enum operation operation);

static inline const struct job_kind *kind_of_spec(const struct spec *spec)
{
    return kind_of_operation(spec->operation);
}

#endif
