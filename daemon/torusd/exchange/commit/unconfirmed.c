/* Describes a decision that some nodes have not confirmed, and says how long the client waits for them. The
 * client does not wait for its whole timeout if that is useless: the remaining nodes cannot be reached, or
 * somebody must first remove an obstacle to an output. */
#include "daemon/torusd/exchange/commit/unconfirmed.h"

#include <string.h>

#include "daemon/torusd/exchange/record/absent.h"
#include "daemon/torusd/exchange/record/sentence.h"

/* How long a client waits for an output with an obstacle. */
#define OBSTACLE_TIME (10 * SECONDS)

enum reason { DOWN, CUT_OFF, LATE, OBSTRUCTED };

static const struct {
    const char *one, *several;
} words[] = {
    [DOWN] = {"went down before it confirmed that its output is in place",
              "went down before they confirmed that their output is in place"},
    [CUT_OFF] = {"cannot be reached and has not confirmed that its output is in place",
                 "cannot be reached and have not confirmed that their output is in place"},
    [LATE] = {"has not confirmed that its output is in place",
              "have not confirmed that their output is in place"},
    [OBSTRUCTED] = {"could not put its output in place, and tries again by itself", NULL},
};

static enum reason reason_of(const struct decision *d, const struct exchanges *exchanges,
                             uint32_t rank)
{
    if (absent_is_down(exchanges, rank))
        return DOWN;
    if (absent_is_unreachable(exchanges, rank))
        return CUT_OFF;
    return rank == d->obstacle_at ? OBSTRUCTED : LATE;
}

struct unconfirmed {
    const struct decision *d;
    const struct exchanges *exchanges;
    enum reason reason;
};

static bool is_one(const void *context, uint32_t rank)
{
    const struct unconfirmed *u = context;

    return !decision_has(u->d, rank) && reason_of(u->d, u->exchanges, rank) == u->reason;
}

/* Adds "nodes 5 (1,1), 6 (1,2) and 3 more went down before ...": the nodes that have not confirmed for this
 * reason. Returns the number of these nodes. */
static uint32_t add_clause(struct sentence *s, const struct decision *d,
                           const struct exchanges *exchanges, enum reason reason,
                           const char *before)
{
    const struct unconfirmed u = {d, exchanges, reason};
    struct sentence nodes = {.used = 0};
    uint32_t count = sentence_add_nodes(&nodes, router_torus(exchanges->set.router), is_one, &u);

    if (count > 0)
        sentence_add(s, "%s%s %s", before, nodes.text,
                     count == 1 ? words[reason].one : words[reason].several);
    return count;
}

void unconfirmed_describe(const struct decision *d, const struct exchanges *exchanges,
                          struct error *e)
{
    struct sentence s = {.used = 0};
    uint32_t down, count;

    down = count = add_clause(&s, d, exchanges, DOWN, "");
    count += add_clause(&s, d, exchanges, CUT_OFF, count > 0 ? "; " : "");
    count += add_clause(&s, d, exchanges, LATE, count > 0 ? "; " : "");
    if (count == 1)
        sentence_add(&s, "; it finishes by itself when it %s", down == count ? "is back" : "can");
    else if (count > 1)
        sentence_add(&s, "; they finish by themselves when they %s",
                     down == count ? "are back" : "can");
    if (add_clause(&s, d, exchanges, OBSTRUCTED, count > 0 ? "; " : "") > 0)
        sentence_add(&s, ": %s", d->obstacle);
    (void)error_set(e, ERROR_IN_DOUBT, "committed, but %s", s.text);
}

/* Returns when the last node that has not confirmed is given up. */
static uint64_t given_up_at(const struct decision *d, const struct exchanges *exchanges)
{
    uint32_t nodes = router_torus(exchanges->set.router)->nodes;
    uint64_t at = 0;

    for (uint32_t rank = 0; rank < nodes && at != ROUTER_NEVER; rank++)
        if (!decision_has(d, rank)) {
            uint64_t one = absent_given_up_at(exchanges, rank);
            at = one > at ? one : at;
        }
    return at;
}

uint64_t unconfirmed_until(const struct decision *d, const struct exchanges *exchanges, bool waits)
{
    uint64_t given_up = waits ? ROUTER_NEVER : given_up_at(d, exchanges);
    uint64_t obstacle =
        d->obstacle_at != TORUS_NO_NODE ? d->obstacle_since + OBSTACLE_TIME : ROUTER_NEVER;

    return given_up < obstacle ? given_up : obstacle;
}
