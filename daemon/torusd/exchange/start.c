/* Starts jobs: checks whether a client's request is possible at this node, and makes the job. */
#include "daemon/torusd/exchange/exchange.h"

#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/base/shares.h"
#include "daemon/torusd/exchange/advance.h"
#include "daemon/torusd/exchange/commit/decisions.h"
#include "daemon/torusd/exchange/commit/unconfirmed.h"
#include "daemon/torusd/exchange/phases/choose_routes.h"
#include "daemon/torusd/exchange/phases/entry.h"
#include "daemon/torusd/exchange/record/avoided.h"
#include "daemon/torusd/exchange/record/job.h"
#include "daemon/torusd/exchange/record/membership.h"
#include "daemon/torusd/exchange/record/predicates.h"
#include "daemon/torusd/exchange/record/table.h"
#include "daemon/torusd/exchange/record/times.h"
#include "daemon/torusd/exchange/start_queue.h"
#include "daemon/torusd/planning/schedule_store.h"

#define DECISIONS_MOST 256u

/* Checks that what is asked for can be done with the links that are up. Returns 0, or -1 with *e. */
static int check_links(const struct exchanges *exchanges, const struct spec *spec, struct error *e)
{
    if (spec->wait || topology_whole(router_topology(exchanges->set.router)))
        return 0;
    if (!spec_avoids_links(spec))
        return start_queue_refuse_links(exchanges, e);
    return membership_check_now(exchanges, (struct left_out){.down = spec->shrink}, e);
}

/* Checks that not too many decisions are on record; each stays there until all nodes have confirmed. */
static int check_decisions(const struct exchanges *exchanges, const struct spec *spec,
                           struct error *e)
{
    unsigned n = decisions_count(exchanges);
    struct error first;

    if (!spec_has_folders(spec) || n < DECISIONS_MOST)
        return 0;
    unconfirmed_describe(exchanges->decisions, exchanges, &first);
    return error_set(
        e, ERROR_REFUSED,
        "%u exchanges that began here are not confirmed by all nodes yet; the last one: %s", n,
        first.text);
}

static int check_start(struct exchanges *exchanges, const struct spec *spec, struct error *e)
{
    const struct torus *t = router_torus(exchanges->set.router);
    const struct algorithm *algorithm;
    enum mode mode = spec->mode;

    if (spec_check(spec, t, e) != 0)
        return -1;
    if (spec->shrink && !spec_avoids_links(spec))
        return error_set(
            e, ERROR_USAGE,
            "only exchanges with algorithm auto can leave out nodes that are down; %s cannot",
            spec->algorithm);
    algorithm = choose_named(spec);
    if (algorithm != NULL && !spec_finds_routes(spec, t, true) &&
        spec_check_algorithm(spec, t, algorithm, &mode, e) != 0)
        return -1;
    if (check_links(exchanges, spec, e) != 0 || check_decisions(exchanges, spec, e) != 0)
        return -1;
    return 0;
}

/* Starts to use the schedule that the spec names, if any; a client must have given it to this node before. */
static int join_schedule(struct exchanges *exchanges, const struct spec *spec, uint32_t user,
                         struct schedule **s, struct error *e)
{
    *s = NULL;
    if (!spec_has_schedule(spec))
        return 0;
    *s = schedules_join(exchanges->schedules, spec->schedule, user, e);
    if (*s == NULL)
        return -1;
    if (schedule_is_complete(*s))
        return 0;
    schedules_leave(exchanges->schedules, *s);
    return error_set(e, ERROR_USAGE, "schedule %.8s has not been given to this node",
                     spec->schedule);
}

static struct job *add_job(struct exchanges *exchanges, struct spec *spec,
                           struct schedule *schedule, const struct exchange_client *client,
                           struct error *e)
{
    const struct job_kind *kind = kind_of_spec(spec);
    uint32_t rank = router_rank(exchanges->set.router);
    struct job *j;

    if (kind->takes_place &&
        shares_take(exchanges->set.shares, SHARE_EXCHANGES, client->user, 1, e) != 0)
        return NULL;
    j = job_new(exchanges, spec, client);
    if (j == NULL) {
        if (kind->takes_place)
            shares_give(exchanges->set.shares, SHARE_EXCHANGES, client->user, 1);
        (void)error_set(e, ERROR_MEMORY, "out of memory for an exchange");
        return NULL;
    }
    attempt_new_name(exchanges, &j->name);
    j->schedule = schedule;
    j->asked = kind->takes_place;
    j->state =
        kind->is_entered && membership_root(exchanges, spec) != rank ? JOB_ENTERED : JOB_WAITING;
    j->timeout_ns = spec->timeout_ns > 0 ? spec->timeout_ns
                    : kind->is_entered   ? SPEC_LONGEST_TIMEOUT
                                         : LONGEST_WAIT;
    j->deadline = j->began + j->timeout_ns;
    j->entered_deadline = j->deadline;
    j->entered_timeout_ns = j->timeout_ns;
    return j;
}

/* Enters what the root has already prepared and nobody has entered here. */
static struct job *enter_prepared(struct attempt *x, struct spec *spec,
                                  const struct exchange_client *client, struct error *e)
{
    struct job *j = entry_enter(x, spec, client, e);

    if (j != NULL && !entry_differs(x, &j->spec, &x->spec))
        attempt_advance(x);
    return j;
}

struct job *exchange_start(struct exchanges *exchanges, const struct spec *wanted,
                           const struct exchange_client *client, struct error *e)
{
    const bool entered = kind_of_spec(wanted)->is_entered;
    struct attempt *prepared;
    struct schedule *schedule;
    struct spec spec;
    struct job *j;

    if (spec_copy(&spec, wanted, e) != 0)
        return NULL;
    if (check_start(exchanges, &spec, e) != 0 ||
        join_schedule(exchanges, &spec, client->user, &schedule, e) != 0) {
        spec_free(&spec);
        return NULL;
    }
    prepared = entered ? entry_preparing(exchanges, &spec) : NULL;
    if (entered && entry_waiting(exchanges, &spec) != NULL) {
        (void)error_set(e, ERROR_REFUSED, "%s \"%s\" has been entered at this node already",
                        operation_name(spec.operation), spec.barrier);
        j = NULL;
    } else if (prepared != NULL) {
        j = enter_prepared(prepared, &spec, client, e);
    } else {
        j = add_job(exchanges, &spec, schedule, client, e);
    }
    if (j == NULL) {
        if (schedule != NULL)
            schedules_leave(exchanges->schedules, schedule);
        spec_free(&spec);
        return NULL;
    }
    if (prepared != NULL)
        return j;
    log_info("exchange %s: %s, %s%s, %s", exchange_id(j), operation_name(spec.operation),
             spec_has_schedule(&spec) ? "schedule " : spec.algorithm, spec.schedule,
             spec_has_folders(&spec) ? "folders" : "generated blocks");
    exchanges->start_due = true;
    start_queue_advance(exchanges);
    return j;
}
