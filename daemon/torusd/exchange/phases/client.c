/* Tells the client of a job how it ended. */
#include "daemon/torusd/exchange/phases/client.h"

#include "daemon/torusd/exchange/phases/choose_routes.h"
#include "daemon/torusd/exchange/record/predicates.h"
#include "daemon/torusd/exchange/record/report.h"

void client_tell(struct job *j, const struct error *e)
{
    struct exchange_result result;

    j->exchanges->tellable -= job_is_tellable(j);
    j->client_state = CLIENT_TOLD;
    if (e != NULL) {
        j->client.ended(j->client.context, NULL, e);
        return;
    }
    choose_learn(j->attempt);
    report_result(j->attempt, &result);
    j->client.ended(j->client.context, &result, NULL);
}
