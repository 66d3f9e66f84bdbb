/* An attempt for which a node had no room is withdrawn everywhere, and its job begins another one later, under a
 * new id, as long as its timeout allows. So is one that can avoid a link that went down meanwhile, and
 * one that waits for nodes that are down, as soon as these are back (attempt_waits_for_nodes()), and
 * a few times one of which something was damaged on its way: its blocks are sent again, but for what can
 * be kept (record/kept_blocks.c). */
#include "daemon/exchange/abort/retry.h"

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/abort/verdict.h"
#include "daemon/exchange/record/job.h"
#include "daemon/exchange/record/predicates.h"
#include "daemon/exchange/record/times.h"

#define PAUSE_FIRST (10 * MILLISECONDS)
#define PAUSE_MOST (1 * SECONDS)
/* A node that always says that its links are down does not keep a job for ever. */
#define REROUTES_MOST 1000u
#define DAMAGES_MOST 3u             /* then it is not chance */
#define SPAN_BYTES 5u               /* of what has arrived, in a message, about */
#define WORTH 8u                    /* times as many bytes to be moved as to be said */
#define COUNTED_TIME (60 * SECONDS) /* of a group, which may be open for weeks: within that time */

void retry_pause(struct job *j)
{
    struct router *router = j->all->set.router;
    uint64_t chance;

    j->pause = j->pause == 0 ? PAUSE_FIRST : 2 * j->pause;
    if (j->pause > PAUSE_MOST)
        j->pause = PAUSE_MOST;
    router_random(router, &chance, sizeof chance);
    j->retry_at = router_now(router) + j->pause / 2 + chance % j->pause;
}

bool retry_may(const struct attempt *x)
{
    return attempt_is_root(x) && state_of(x)->prepares;
}

bool retry_after_link_loss(const struct attempt *x)
{
    if (!attempt_survives_link_loss(x) || !attempt_is_root(x) || x->job->reroutes == REROUTES_MOST)
        return false;
    return retry_may(x) || (kind_of(x)->retries_running && state_of(x)->runs);
}

/* How often that has been so, as far as it counts. */
static uint32_t damages(const struct attempt *x)
{
    bool long_ago = router_now(router_of(x)) >= x->job->damaged_at + COUNTED_TIME;

    return kind_of(x)->has_session && long_ago ? 0 : x->job->damages;
}

bool retry_after_damage(const struct attempt *x)
{
    return attempt_is_root(x) && kind_of(x)->retries_running && damages(x) < DAMAGES_MOST &&
           state_of(x)->runs && (attempt_survives_link_loss(x) || !verdict_is_cut(x));
}

/* Of one that waits, repetitions that all nodes have completed are not made again. Of any other all are: they are
 * compared with each other, so their routes have to be the same. */
static void keep_repetitions(const struct attempt *x)
{
    struct repetitions *r = &x->job->repetitions;
    uint32_t done = r->count - r->kept;

    if (x->spec.wait && done > 0) {
        /* The end was found to be damaged: at least the last one is made again. */
        if (done == x->spec.repeat)
            done--;
        if (r->first_went == 0)
            r->first_went = x->rounds.first_went;
        r->kept += done;
    }
    r->count = r->kept;
}

static void withdraw(struct attempt *x, const struct error *busy)
{
    struct job *j = x->job;

    if (state_of(x)->runs) {
        j->former = (struct name){.id = x->id, .handle = x->handle};
    }
    verdict_send(x, busy);
    x->failure = j->failure = *busy;
    j->back_at = router_now(router_of(x));
    retry_pause(j);
    if (x->spec.timeout_ns == 0) {
        j->timeout_ns = LONGEST_WAIT;
        j->deadline = j->since + j->timeout_ns;
    }
    keep_repetitions(x);
    attempt_end(x, EXCHANGE_WITHDRAWN);
}

void retry_withdrawn(struct attempt *x, const struct error *why)
{
    if (attempt_is_open_group(x) && state_of(x)->awaits_verdict && !error_is_for_now(&x->failure))
        x->job->failure = x->failure;
    x->failure = *why;
    attempt_end(x, EXCHANGE_WITHDRAWN);
}

void retry_later(struct attempt *x, const struct error *busy)
{
    log_debug("exchange %s: attempt withdrawn, waiting to retry: %s", x->id.text, busy->text);
    withdraw(x, busy);
}

/* Every node of which files have been moved keeps its output, so it has to be told. */
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
    x->job->since = router_now(router_of(x));
    x->job->pause = 0; /* the shortest one: nobody has been busy since */
    withdraw(x, &busy);
}

void retry_without_links(struct attempt *x, const struct error *fault)
{
    log_info("exchange %s: attempt withdrawn, retrying: %s", x->id.text, fault->text);
    if (kind_of(x)->has_session && state_of(x)->runs &&
        router_now(router_of(x)) >= x->rounds.first_went + COUNTED_TIME)
        x->job->reroutes = 0;
    x->job->reroutes++;
    retry_now(x, fault);
}

void retry_links_restored(struct attempt *x)
{
    struct error e;

    (void)error_set(&e, ERROR_LINK, "links that it went around are up again");
    retry_without_links(x, &e);
}

void retry_damaged(struct attempt *x, const struct error *damage)
{
    log_warning("exchange %s: attempt withdrawn, retrying: %s", x->id.text, damage->text);
    x->job->damages = damages(x) + 1;
    x->job->damaged_at = router_now(router_of(x));
    retry_now(x, damage);
}

uint64_t retry_deadline(const struct job *j)
{
    return j->retry_at != 0 && j->retry_at < j->deadline ? j->retry_at : j->deadline;
}
