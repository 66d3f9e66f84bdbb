/* How a finished attempt with a result is committed. The root records its decision. From then on every node
 * puts its output under its final name, during the wave or when it can, and confirms that to the root. */
#include "daemon/torusd/exchange/commit/commit.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/abort/fail.h"
#include "daemon/torusd/exchange/abort/verdict.h"
#include "daemon/torusd/exchange/commit/decisions.h"
#include "daemon/torusd/exchange/commit/in_doubt.h"
#include "daemon/torusd/exchange/commit/unconfirmed.h"
#include "daemon/torusd/exchange/record/attempt_state.h"
#include "daemon/torusd/exchange/record/avoided.h"
#include "daemon/torusd/exchange/record/job.h"
#include "daemon/torusd/exchange/record/local_resources.h"
#include "daemon/torusd/exchange/record/predicates.h"
#include "daemon/torusd/exchange/record/table.h"
#include "daemon/torusd/exchange/record/times.h"
#include "daemon/torusd/exchange/record/tree_messages.h"

static void send_commit(struct attempt *x)
{
    const struct peer_message message = {.kind = PEER_COMMIT, .commit = {x->handle}};

    tree_messages_to_children(x, &message);
}

/* Starts to commit. `wave`: the children hear of the decision from this node, and confirm to it. */
static void begin_commit(struct attempt *x, bool wave)
{
    attempt_enter(x, EXCHANGE_COMMITTING);
    if (attempt_is_root(x) && attempt_waits_for_nodes(x) && x->spec.timeout_ns == 0)
        x->deadline = router_now(router_of(x)) + LONGEST_WAIT;
    if (!attempt_is_root(x)) {
        tree_messages_begin_wave(x);
        x->owed &= wave ? ~x->fault.lost : OWN_PART;
        x->deadline = router_now(router_of(x)) + VERDICT_TIME;
    }
    commit_advance(x);
}

void commit_begin(struct attempt *x)
{
    begin_commit(x, false);
}

static void on_recorded(void *context, const char *text, const struct error *e)
{
    struct exchanges *exchanges = context;
    struct attempt *x = attempt_find_text(exchanges, text);

    if (x == NULL || x->state != EXCHANGE_DECIDING)
        return;
    if (e != NULL) {
        struct error why = *e;
        decision_drop(exchanges, decision_find(exchanges, &x->id));
        (void)error_wrap(&why, "the decision to commit could not be recorded");
        verdict_send(x, &why);
        x->failure = why;
        attempt_end(x, EXCHANGE_FAILED);
        return;
    }
    send_commit(x);
    if (verdict_is_cut(x)) /* the tree is cut, so some nodes hear of it by reminders only */
        decision_remind_soon(exchanges, decision_find(exchanges, &x->id));
    begin_commit(x, true);
}

void commit_decide(struct attempt *x)
{
    const struct storage *storage = x->exchanges->set.storage;
    uint64_t remind_at = router_now(router_of(x)) + VERDICT_TIME; /* the wave is usually faster */
    struct decision *decision = decision_add(x->exchanges, &x->id, remind_at);
    struct error e;

    if (decision == NULL) {
        (void)error_set(&e, ERROR_MEMORY, "out of memory for the decision to commit");
        attempt_fail(x, &e);
        return;
    }
    for (uint32_t rank = 0; rank < torus_of(x)->nodes; rank++)
        if (avoided_is_left_out(x, rank))
            decision_excuse(decision, rank);
    attempt_enter(x, EXCHANGE_DECIDING);
    storage->record_commit(storage->context, x->id.text, on_recorded, x->exchanges);
}

static void send_confirmations(struct attempt *x)
{
    if (x->confirmed_count > 0)
        decision_confirm(x->exchanges, &x->id, x->confirmed, x->confirmed_count, "");
    x->confirmed_count = 0;
}

/* Collects confirmations, so that a part of the tree confirms with one message. */
static void collect_confirmations(struct attempt *x, const uint32_t *rank, size_t count)
{
    uint32_t nodes = torus_of(x)->nodes;

    if (x->confirmed == NULL)
        x->confirmed = calloc(nodes, sizeof *x->confirmed);
    if (x->confirmed == NULL || x->confirmed_count + count > nodes) {
        decision_confirm(x->exchanges, &x->id, rank, count, "");
        return;
    }
    memcpy(x->confirmed + x->confirmed_count, rank, count * sizeof *rank);
    x->confirmed_count += (uint32_t)count;
}

static void end_if_complete(struct attempt *x)
{
    if (x->owed != 0)
        return;
    send_confirmations(x);
    attempt_end(x, EXCHANGE_COMMITTED);
}

bool commit_collects(struct attempt *x, unsigned port, const uint32_t *rank, size_t count)
{
    if (x == NULL || x->state != EXCHANGE_COMMITTING || (x->owed & 1u << port) == 0)
        return false;
    collect_confirmations(x, rank, count);
    x->owed &= ~(1u << port);
    end_if_complete(x);
    return true;
}

void commit_topology(struct attempt *x)
{
    if (attempt_is_root(x))
        return; /* the root waits for nodes, not for links */
    x->owed &= ~x->fault.lost;
    end_if_complete(x);
}

uint64_t commit_deadline(const struct attempt *x)
{
    uint64_t until = unconfirmed_until(decision_find(x->exchanges, &x->id), x->exchanges,
                                       attempt_waits_for_nodes(x));

    return until < x->deadline ? until : x->deadline;
}

void commit_stop_waiting(struct attempt *x)
{
    x->deadline = ROUTER_NEVER;
    x->owed &= OWN_PART;
    send_confirmations(x);
    end_if_complete(x);
}

static void on_placed(struct attempt *x)
{
    uint32_t rank = rank_of(x);

    local_resources_close(x, false);
    if (attempt_is_root(x)) {
        decision_confirm_own(x->exchanges, &x->id, "");
        return;
    }
    x->owed &= ~OWN_PART;
    collect_confirmations(x, &rank, 1);
    end_if_complete(x);
}

static void on_obstacle(struct attempt *x, const struct error *e)
{
    log_error("exchange %s: the output could not be put in place: %s", x->id.text, e->text);
    local_resources_close(x, true);
    in_doubt_add(x, true);
    decision_confirm_own(x->exchanges, &x->id, e->text);
    if (attempt_is_root(x))
        return;
    send_confirmations(x);
    x->failure = *e;
    attempt_end(x, EXCHANGE_IN_DOUBT);
}

void commit_advance(struct attempt *x)
{
    struct error e;
    int result;

    if (x->local.sink == NULL)
        return; /* the output is in place here; only other nodes are not done */
    result = x->local.sink->ops->commit(x->local.sink, &e);
    if (result > 0)
        on_placed(x);
    else if (result < 0)
        on_obstacle(x, &e);
}

int commit_heard(struct attempt *x, unsigned port, const struct peer_commit *message,
                 struct error *e)
{
    (void)port, (void)message, (void)e;
    send_commit(x);
    if (x->state == EXCHANGE_DONE)
        begin_commit(x, true);
    else if (x->state == EXCHANGE_IN_DOUBT)
        (void)in_doubt_resolve(x->exchanges, &x->id, true);
    /* In other states a reminder was faster, and only nodes below this one may still need the decision. */
    return 0;
}
