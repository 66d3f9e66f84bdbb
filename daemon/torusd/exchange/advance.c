/* Other code changes only what an attempt knows. attempt_advance() then does what follows from that. */
#include "daemon/torusd/exchange/advance.h"

#include "daemon/torusd/exchange/commit/commit.h"
#include "daemon/torusd/exchange/phases/piece_repair.h"
#include "daemon/torusd/exchange/phases/prepare.h"
#include "daemon/torusd/exchange/phases/rounds.h"

void attempt_advance(struct attempt *x)
{
    switch (x->state) {
    case EXCHANGE_OPENING:
    case EXCHANGE_PREPARING:
        prepare_advance(x);
        break;
    case EXCHANGE_RUNNING:
        piece_repair_advance(x);
        rounds_advance(x);
        break;
    case EXCHANGE_DONE:
        piece_repair_advance(x);
        break;
    case EXCHANGE_COMMITTING:
        commit_advance(x);
        break;
    default:
        break;
    }
}
