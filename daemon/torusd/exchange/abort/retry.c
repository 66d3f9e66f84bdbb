/* The root withdraws an attempt on all nodes, and its job starts another one under a new id, in these cases: a
 * node had no memory for it (the job retries later, until its timeout); a link went down that the attempt can
 * avoid; the attempt waits for nodes that are down, until they are back (attempt_waits_for_nodes()); or data
 * was damaged on its way, a few times at most. The next attempt sends all blocks again, except those that were
 * kept (record/kept_blocks.c). */
#include "daemon/torusd/exchange/abort/retry.h"

#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/abort/verdict.h"
#include "daemon/torusd/exchange/record/job.h"
#include "daemon/torusd/exchange/record/predicates.h"
#include "daemon/torusd/exchange/record/times.h"

#define PAUSE_FIRST (10 * MILLISECONDS)
#define PAUSE_MOST (1 * SECONDS)
/* Limits the retries that a node can cause by always reporting that its links are down. */
#define REROUTES_MOST 1000u
#define DAMAGES_MOST 3u /* more damage than this has a lasting cause */
/* Estimated bytes of a message for each span that has arrived. */
#define SPAN_BYTES 5u
/* Keeping blocks pays if this many times more bytes are moved than told. */
#define WORTH 8u
/* For a group, which may be open for weeks, older retries do not count. */
#define COUNTED_TIME (60 * SECONDS)

void retry_pause(struct job *j)
{
    struct router *router = j->exchanges->set.router;
    uint64_t chance;

    j->pause = j->pause == 0 ? PAUSE_FIRST : 2 * j->pause;
    if (j->pause > PAUSE_MOST)
        j->pause = PAUSE_MOST;
    router_random(router, &chance, sizeof chance);
    j->retry_at = router_now(router) + j->pause / 2 + chance % j->pause;
}

bool retry_may_withdraw(const struct attempt *x)
{
    return attempt_is_root(x) && state_of(x)->prepares;
}

bool retry_after_link_loss(const struct attempt *x)
{
    if (!attempt_survives_link_loss(x) || !attempt_is_root(x) || x->job->reroutes == REROUTES_MOST)
        return false;
    return retry_may_withdraw(x) || (kind_of(x)->retries_running && state_of(x)->runs);
}

/* Returns how many retries after damage count. */
static uint32_t damages_that_count(const struct attempt *x)
{
    bool long_ago = router_now(router_of(x)) >= x->job->damaged_at + COUNTED_TIME;

    return kind_of(x)->has_session && long_ago ? 0 : x->job->damages;
}

bool retry_after_damage(const struct attempt *x)
{
    return attempt_is_root(x) && kind_of(x)->retries_running &&
           damages_that_count(x) < DAMAGES_MOST && state_of(x)->runs &&
           (attempt_survives_link_loss(x) || !verdict_is_cut(x));
}

/* If the spec waits for nodes, repetitions that all nodes have completed are not repeated. Otherwise all are:
 * their times are compared with each other, so all must use the same routes. */
static void keep_repetitions(const struct attempt *x)
{
    struct repetitions *r = &x->job->repetitions;
    uint32_t done = r->count - r->kept;

    if (x->spec.wait && done > 0) {
        /* The last check found damage, so at least the last repetition is made again. */
        if (done == x->spec.repeat)
            done--;
        if (r->first_go_at == 0)
            r->first_go_at = x->rounds.first_go_at;
        r->kept += done;
    }
    r->count = r->kept;
}

static void withdraw_attempt(struct attempt *x, const struct error *busy)
{
    struct job *j = x->job;

    if (state_of(x)->runs) {
        j->former = (struct attempt_name){.id = x->id, .handle = x->handle};
    }
    verdict_send(x, busy);
    x->failure = j->failure = *busy;
    j->withdrawn_at = router_now(router_of(x));
    retry_pause(j);
    if (x->spec.timeout_ns == 0) {
        j->timeout_ns = LONGEST_WAIT;
        j->deadline = j->waiting_since + j->timeout_ns;
    }
    keep_repetitions(x);
    attempt_end(x, EXCHANGE_WITHDRAWN);
}

void retry_withdrawn(struct attempt *x, const struct error *why)
{
    if (attempt_is_open_group(x) && state_of(x)->awaits_verdict && !error_is_temporary(&x->failure))
        x->job->failure = x->failure;
    x->failure = *why;
    attempt_end(x, EXCHANGE_WITHDRAWN);
}

void retry_later(struct attempt *x, const struct error *busy)
{
    log_debug("exchange %s: attempt withdrawn, waiting to retry: %s", x->id.text, busy->text);
    withdraw_attempt(x, busy);
}

/* Lets the next attempt resume this one if that saves more bytes than telling costs. Files are always resumed:
 * every node from which files have been moved keeps its output, and must be told. */
static void resume_next(struct attempt *x)
{
    const struct torus *t = torus_of(x);
    double said, moved;

    if (!state_of(x)->moves || x->mode != MODE_STREAMING || !attempt_may_resume(x) ||
        !exchange_id_is_none(&x->job->resumes))
        return;
    said = (double)t->nodes * t->nodes * x->algorithm->segments * SPAN_BYTES;
    moved = torus_bound_all_port(t) * (double)x->spec.block_bytes;
    if (spec_has_folders(&x->spec) || said * WORTH <= moved)
        x->job->resumes = x->id;
}

static void retry_now(struct attempt *x, const struct error *why)
{
    struct error busy = *why;

    busy.code = ERROR_BUSY;
    resume_next(x);
    x->job->waiting_since = router_now(router_of(x));
    x->job->pause = 0; /* no node was busy since the last pause, so start with the shortest one */
    withdraw_attempt(x, &busy);
}

void retry_without_links(struct attempt *x, const struct error *fault)
{
    log_info("exchange %s: attempt withdrawn, retrying: %s", x->id.text, fault->text);
    if (kind_of(x)->has_session && state_of(x)->runs &&
        router_now(router_of(x)) >= x->rounds.first_go_at + COUNTED_TIME)
        x->job->reroutes = 0;
    x->job->reroutes++;
    retry_now(x, fault);
}

void retry_links_restored(struct attempt *x)
{
    struct error e;

    (void)error_set(&e, ERROR_LINK, "links that the group avoided are up again");
    retry_without_links(x, &e);
}

void retry_damaged(struct attempt *x, const struct error *damage)
{
    log_warning("exchange %s: attempt withdrawn, retrying: %s", x->id.text, damage->text);
    x->job->damages = damages_that_count(x) + 1;
    x->job->damaged_at = router_now(router_of(x));
    retry_now(x, damage);
}

uint64_t retry_deadline(const struct job *j)
{
    return j->retry_at != 0 && j->retry_at < j->deadline ? j->retry_at : j->deadline;
}
