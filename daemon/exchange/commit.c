/* From done to committed, where there is a result to keep. The root records its decision; from then
 * on every node puts its output under its final name, in the wave or whenever it can, and confirms
 * that to the root. */
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/internal.h"

static void send_commit(struct exchange *x)
{
    Peer__Commit message = PEER__COMMIT__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    message.exchange = x->handle;
    head.kind_case = PEER__HEAD__KIND_COMMIT;
    head.commit = &message;
    wave_to_children(x, &head);
}

void commit_begin(struct exchange *x)
{
    exchange_enter(x, EXCHANGE_COMMITTING);
    exchange_advance(x);
}

static void on_recorded(void *context, const char *id, const struct error *e)
{
    struct exchanges *all = context;
    struct exchange *x = exchange_find_id(all, id);

    if (x == NULL || x->state != EXCHANGE_DECIDING)
        return;
    if (e != NULL) {
        struct error why = *e;
        decision_drop(all, decision_find(all, id));
        (void)error_wrap(&why, "the decision to commit could not be recorded");
        verdict_send(x, &why);
        x->failure = why;
        exchange_enter(x, EXCHANGE_FAILED);
        return;
    }
    send_commit(x);
    commit_begin(x);
}

void commit_decide(struct exchange *x)
{
    const struct storage *storage = x->all->set.storage;
    struct error e;

    if (decision_add(x->all, x->id) == NULL) {
        (void)error_set(&e, ERROR_MEMORY, "out of memory for a decision");
        verdict_here(x, &e);
        return;
    }
    exchange_enter(x, EXCHANGE_DECIDING);
    storage->record_commit(storage->context, x->id, on_recorded, x->all);
}

void commit_advance(struct exchange *x)
{
    struct exchanges *all = x->all;
    struct error e;
    int result;

    if (x->own.sink == NULL)
        return; /* the root, which waits for the others */
    result = x->own.sink->ops->commit(x->own.sink, &e);
    if (result == 0)
        return;
    opening_close(x, result < 0);
    if (result > 0) {
        if (!exchange_is_root(x))
            exchange_enter(x, EXCHANGE_COMMITTED);
        decision_confirm(all, x->id, rank_of(x), "");
        return;
    }
    log_error("exchange %s: the output could not be put in place: %s", x->id, e.text);
    doubt_add(all, x->id, true);
    if (!exchange_is_root(x)) {
        x->failure = e;
        exchange_enter(x, EXCHANGE_IN_DOUBT);
    }
    decision_confirm(all, x->id, rank_of(x), e.text);
}

int commit_heard(struct exchange *x, unsigned port, const Peer__Head *head, struct error *e)
{
    (void)port, (void)head;
    if (x->state == EXCHANGE_DONE && !exchange_is_durable(x))
        return error_set(e, ERROR_PROTOCOL, "exchange %s has nothing to commit", x->id);
    send_commit(x);
    if (x->state == EXCHANGE_DONE)
        commit_begin(x);
    else
        (void)doubt_settle(x->all, x->id, true);
    return 0;
}
