#include "daemon/torusd/exchange/record/job_kind.h"

#include "daemon/torusd/exchange/record/exchange_record.h"

static uint64_t no_memory(const struct exchanges *exchanges)
{
    (void)exchanges;
    return 0;
}

static uint64_t session_memory(const struct exchanges *exchanges)
{
    return exchanges->set.sessions.memory;
}

static void forget_session(struct exchanges *exchanges, const struct exchange_id *first)
{
    if (exchanges->set.sessions.forget != NULL)
        exchanges->set.sessions.forget(exchanges->set.sessions.context, first->text);
}

static const struct job_kind exchange = {
    .has_blocks = true,
    .retries_running = true,
    .takes_place = true,
    .share = SHARE_TRANSIT,
};

static const struct job_kind barrier = {
    .is_entered = true,
    .tells_arrivals = true,
    .share = SHARE_TRANSIT,
    .memory = no_memory,
};

static const struct job_kind group = {
    .is_entered = true,
    .has_session = true,
    .retries_running = true,
    .first_remaining_leads = true,
    .share = SHARE_GROUPS,
    .memory = session_memory,
    .forget = forget_session,
};

const struct job_kind *kind_of_operation(enum operation operation)
{
    switch (operation) {
    case OPERATION_BARRIER:
        return &barrier;
    case OPERATION_GROUP:
        return &group;
    default:
        return &exchange;
    }
}
