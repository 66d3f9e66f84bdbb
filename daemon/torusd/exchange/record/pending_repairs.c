/* Pieces of blocks that arrived damaged here, and pieces that other nodes have asked for again. */
#include "daemon/torusd/exchange/record/pending_repairs.h"

#include <stdlib.h>

#include "daemon/torusd/engine/piece_digest.h"
#include "daemon/torusd/exchange/record/attempt.h"

void pending_repairs_free(struct attempt *x)
{
    struct pending_repairs *m = x->local.repairs;

    if (m == NULL)
        return;
    piece_states_free(&m->states);
    free(m->query);
    free(m);
    x->local.repairs = NULL;
}

uint32_t pending_repairs_count(const struct attempt *x)
{
    return x->local.repairs != NULL ? x->local.repairs->repaired : 0;
}
