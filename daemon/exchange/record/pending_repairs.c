/* Pieces of blocks that have arrived damaged here, and those that others have asked for once more. */
#include <stdlib.h>

#include "daemon/exchange/record/exchange_record.h"

void mend_free(struct attempt *x)
{
    struct mending *m = x->own.mending;

    if (m == NULL)
        return;
    piece_states_free(&m->states);
    free(m->query);
    free(m);
    x->own.mending = NULL;
}

uint32_t mend_count(const struct attempt *x)
{
    return x->own.mending != NULL ? x->own.mending->mended : 0;
}
