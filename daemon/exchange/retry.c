/* An exchange for which a node had no room is taken back everywhere, and begins anew later, under a
 * new id, as long as its timeout allows. */
#include "daemon/base/log.h"
#include "daemon/exchange/internal.h"

#define PAUSE_FIRST (10 * MILLISECONDS)
#define PAUSE_MOST (1 * SECONDS)

/* Before it begins anew. */
void retry_pause(struct exchange *x)
{
    struct turn *turn = &x->turn;
    uint64_t chance;

    turn->pause = turn->pause == 0 ? PAUSE_FIRST : 2 * turn->pause;
    if (turn->pause > PAUSE_MOST)
        turn->pause = PAUSE_MOST;
    router_random(router_of(x), &chance, sizeof chance);
    turn->retry_at = router_now(router_of(x)) + turn->pause / 2 + chance % turn->pause;
}

bool retry_may(const struct exchange *x)
{
    return exchange_is_root(x) && (x->state == EXCHANGE_OPENING || x->state == EXCHANGE_PREPARING);
}

/* Somewhere there was no room for it. */
void retry_later(struct exchange *x, const struct error *busy)
{
    verdict_send(x, busy);
    x->failure = *busy;
    x->own.round_bytes = 0;
    x->own.largest_block = x->own.bytes_here = x->own.bytes_below = 0;
    if (spec_chooses_late(&x->spec))
        x->algorithm = NULL;
    retry_pause(x);
    if (x->spec.timeout_ns == 0)
        x->deadline = x->began + LONGEST_WAIT;
    log_debug("exchange %s waits and will be started again: %s", x->id, busy->text);
    exchange_enter(x, EXCHANGE_WAITING);
}

uint64_t retry_deadline(const struct exchange *x)
{
    return x->turn.retry_at != 0 && x->turn.retry_at < x->deadline ? x->turn.retry_at : x->deadline;
}
