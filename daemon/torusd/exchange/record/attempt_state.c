#include "daemon/torusd/exchange/record/attempt_state.h"

#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/exchange/interface/exchange_types.h"
#include "daemon/torusd/exchange/record/kept_blocks.h"
#include "daemon/torusd/exchange/record/local_resources.h"
#include "daemon/torusd/exchange/record/predicates.h"
#include "daemon/torusd/exchange/record/totals.h"
#include "daemon/torusd/exchange/record/tracing.h"

static void tell_log(const struct attempt *x)
{
    switch (x->state) {
    case EXCHANGE_FINISHED:
        log_debug("exchange %s: this node has done its part", x->id.text);
        break;
    case EXCHANGE_COMMITTED:
        if (x->failure.code == ERROR_NONE)
            log_info("exchange %s: done", x->id.text);
        else
            log_warning("exchange %s: %s", x->id.text, x->failure.text);
        break;
    case EXCHANGE_WITHDRAWN:
        log_debug("exchange %s will be retried: %s", x->id.text, x->failure.text);
        break;
    case EXCHANGE_FAILED:
        log_warning("exchange %s failed: %s", x->id.text, x->failure.text);
        break;
    case EXCHANGE_IN_DOUBT:
        log_warning("exchange %s is in doubt (%s): its output is kept under its temporary name",
                    x->id.text, x->failure.text);
        break;
    default:
        break;
    }
}

void attempt_closed_one(struct attempt *x)
{
    if (--x->local.closing > 0)
        return;
    x->exchanges->tellable += x->job != NULL && job_is_tellable(x->job);
    x->exchanges->start_due = true;
}

void attempt_enter(struct attempt *x, enum exchange_state state)
{
    struct exchanges *exchanges = x->exchanges;
    bool had_ended = state_of(x)->ended, ends = exchange_has_ended(state);

    if ((state_of(x)->next & 1u << state) == 0 && exchanges->broken.code == ERROR_NONE) {
        (void)error_set(&exchanges->broken, ERROR_PROTOCOL,
                        "exchange %s changes from %s to %s, which its table forbids", x->id.text,
                        state_of(x)->name, attempt_states[state].name);
        log_error("%s: this is a bug", exchanges->broken.text);
    }
    x->state = state;
    tracing_note_state(x);
    if (ends)
        totals_note_end(x);
    if (attempt_states[state].owed == NONE)
        x->owed = 0;
    if (ends && !had_ended) {
        DL_DELETE(exchanges->active, x);
        DL_APPEND(exchanges->ended, x);
        exchanges->active_count--;
        exchanges->ended_count++;
    }
    if (attempt_states[state].engine == NONE)
        local_resources_release_engine(x);
    if (attempt_states[state].blocks == NONE)
        local_resources_close(x, state == EXCHANGE_IN_DOUBT);
    if (state == EXCHANGE_FAILED && !attempt_may_be_followed(x))
        kept_blocks_drop(x);
    if (ends && !had_ended)
        exchanges->start_due = true;
    tell_log(x);
}
