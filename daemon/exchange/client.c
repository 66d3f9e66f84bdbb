/* What the client of an exchange is told, once. */
#include "daemon/exchange/choose.h"
#include "daemon/exchange/internal.h"

void exchange_tell(struct exchange *x, const struct error *e)
{
    struct exchange_result result;

    if (exchange_has_ended(x->state) && x->own.closing == 0)
        x->all->tellable--;
    x->client_state = CLIENT_TOLD;
    if (e != NULL) {
        x->client.ended(x->client.context, NULL, e);
        return;
    }
    choose_learn(x);
    report_result(x, &result);
    x->client.ended(x->client.context, &result, NULL);
}
