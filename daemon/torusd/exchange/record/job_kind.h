/* The three kinds of jobs: exchanges (also allgathers and broadcasts), barriers and groups. One table lists how
 * they differ; other code reads the table's row and does not look at the operation. */
#pragma once

#include "daemon/lib/base/shares.h"
#include "daemon/torusd/exchange/record/id.h"
#include "daemon/torusd/planning/spec.h"

struct exchanges;

struct job_kind {
    /* True: a client enters the job at every node, and the job begins when all have entered. False: one client
     * asks for the job at its root. */
    bool is_entered;
    /* True: nodes move blocks. False: nodes exchange waves only. */
    bool has_blocks;
    /* The job stays open after all have entered, and its engine is a session (session.h). The root restarts the
     * job under another id, and keeps the session. */
    bool has_session;
    /* Nodes tell each other when each of them entered (record/barrier_times.h). */
    bool tells_arrivals;
    /* The root may withdraw an attempt that runs and start another one, because clients hear of the end only
     * from the root. Clients of a barrier learn it from `go`. */
    bool retries_running;
    /* If the job shrinks, the first remaining node is its root. */
    bool first_remaining_leads;
    /* The number of such jobs under way is limited: of one user, of one root, and in total. */
    bool takes_place;
    enum share share; /* the share of memory that the job takes */
    /* Returns how many bytes of that share the job takes. NULL: the amount depends on the job's blocks. */
    uint64_t (*memory)(const struct exchanges *exchanges);
    /* Frees what is kept for a job whose first attempt had this id, because the job is over here. NULL: nothing
     * is kept. */
    void (*forget)(struct exchanges *exchanges, const struct exchange_id *first);
};

/* Returns the row of an operation. */
const struct job_kind *kind_of_operation(enum operation operation);

static inline const struct job_kind *kind_of_spec(const struct spec *spec)
{
    return kind_of_operation(spec->operation);
}
