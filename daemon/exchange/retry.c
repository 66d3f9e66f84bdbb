/* An exchange for which a node had no room is taken back everywhere, and begins anew later, under a
 * new id, as long as its timeout allows. So is one that can go around a link that went down meanwhile, and
 * one that waits for nodes that are down, as soon as these are back (waiting.c), and
 * a few times one of which something was damaged on its way: its blocks are sent again, but for what can
 * be kept (resume.c). */
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/internal.h"

#define PAUSE_FIRST (10 * MILLISECONDS)
#define PAUSE_MOST (1 * SECONDS)
#define REROUTES_MOST                                                                              \
    1000u /* a node that always says that its links are down does not keep it for ever */

#define DAMAGES_MOST 3u             /* then it is not chance */
#define COUNTED_TIME (60 * SECONDS) /* of a group, which may be open for weeks: within that time */

/* Before it begins anew. */
void retry_pause(struct exchange *x)
{
    struct turn *turn = &x->turn;
    uint64_t chance;

    turn->pause = turn->pause == 0 ? PAUSE_FIRST : 2 * turn->pause;
    if (turn->pause > PAUSE_MOST)
        turn->pause = PAUSE_MOST;
    turn->anew = true;
    router_random(router_of(x), &chance, sizeof chance);
    turn->retry_at = router_now(router_of(x)) + turn->pause / 2 + chance % turn->pause;
}

bool retry_may(const struct exchange *x)
{
    return exchange_is_root(x) && (x->state == EXCHANGE_OPENING || x->state == EXCHANGE_PREPARING);
}

/* Clients that have entered a barrier are told of its end by `go`; those of all else only by its root, or
 * by the session of their group. */
bool retry_goes_around(const struct exchange *x)
{
    if (!waiting_or_around(x) || !exchange_is_root(x) || x->turn.reroutes == REROUTES_MOST)
        return false;
    if (standing_is_one(x) && x->state == EXCHANGE_RUNNING)
        return true;
    return retry_may(x) || (!spec_is_entered(&x->spec) &&
                            (x->state == EXCHANGE_RUNNING || x->state == EXCHANGE_PAUSED));
}

/* That count. */
static uint32_t damages(const struct exchange *x)
{
    bool long_ago = router_now(router_of(x)) >= x->turn.damaged_at + COUNTED_TIME;

    return standing_is_one(x) && long_ago ? 0 : x->turn.damages;
}

bool retry_mends(const struct exchange *x)
{
    return exchange_is_root(x) && (!spec_is_entered(&x->spec) || standing_is_one(x)) &&
           damages(x) < DAMAGES_MOST &&
           (x->state == EXCHANGE_RUNNING || x->state == EXCHANGE_PAUSED) &&
           (waiting_or_around(x) || !verdict_is_cut(x));
}

/* Of one that waits, repetitions that all nodes have completed are not made again. Of any other all are: they are
 * compared with each other, so their routes have to be the same. */
static void keep_repetitions(struct exchange *x)
{
    const struct rounds *r = &x->rounds;
    uint32_t done = r->each_count - x->turn.repeated;

    if (!x->spec.wait || done == 0)
        return;
    if (done ==
        x->spec
            .repeat) /* something was found to be damaged at the end: at least the last one is made again */
        done--;
    if (x->turn.first_went == 0)
        x->turn.first_went = r->first_went;
    x->turn.repeated += done;
    x->spec.repeat -= done;
}

/* As if it had never begun. What has been counted, moved or written is given up. */
static void forget_attempt(struct exchange *x)
{
    struct rounds *r = &x->rounds;

    x->own.round_bytes = 0;
    x->own.whole_block = 0;
    x->own.largest_block = x->own.bytes_here = x->own.bytes_below = x->own.delivered_bytes = 0;
    keep_repetitions(x);
    *r = (struct rounds){
        .count = 1, .each = r->each, .each_count = x->turn.repeated, .each_room = r->each_room};
    report_free(&x->report);
    if (spec_chooses_late(&x->spec))
        x->algorithm = NULL;
    if (waiting_or_around(x)) /* what is down now it goes around the next time, or waits for */
        x->fault = NO_FAULT;
}

static void take_back(struct exchange *x, const struct error *busy)
{
    if (x->state == EXCHANGE_RUNNING || x->state == EXCHANGE_PAUSED) {
        x->turn.former_handle = x->handle;
        memcpy(x->turn.former, x->id, sizeof x->turn.former);
    }
    verdict_send(x, busy);
    x->failure = *busy;
    x->turn.back_at = router_now(router_of(x));
    retry_pause(x);
    if (x->spec.timeout_ns == 0) {
        x->timeout_ns = LONGEST_WAIT;
        x->deadline = x->turn.since + x->timeout_ns;
    }
    exchange_enter(x, EXCHANGE_WAITING);
    forget_attempt(x);
}

void retry_later(struct exchange *x, const struct error *busy)
{
    log_debug("exchange %s waits and will be started again: %s", x->id, busy->text);
    take_back(x, busy);
}

static void begin_anew(struct exchange *x, const struct error *why)
{
    struct error busy = *why;

    busy.code = ERROR_BUSY;
    resume_next(x);
    standing_name(x);
    x->turn.since = router_now(router_of(x));
    x->turn.pause = 0; /* the shortest one: nobody has been busy since */
    take_back(x, &busy);
}

void retry_around(struct exchange *x, const struct error *fault)
{
    log_info("exchange %s begins anew: %s", x->id, fault->text);
    if (standing_is_one(x) && x->state == EXCHANGE_RUNNING &&
        router_now(router_of(x)) >= x->rounds.first_went + COUNTED_TIME)
        x->turn.reroutes = 0;
    x->turn.reroutes++;
    begin_anew(x, fault);
}

void retry_mended(struct exchange *x)
{
    struct error e;

    (void)error_set(&e, ERROR_LINK, "links that it went around are up again");
    retry_around(x, &e);
}

void retry_damaged(struct exchange *x, const struct error *damage)
{
    log_warning("exchange %s begins anew: %s", x->id, damage->text);
    x->turn.damages = damages(x) + 1;
    x->turn.damaged_at = router_now(router_of(x));
    begin_anew(x, damage);
}

uint64_t retry_deadline(const struct exchange *x)
{
    return x->turn.retry_at != 0 && x->turn.retry_at < x->deadline ? x->turn.retry_at : x->deadline;
}
