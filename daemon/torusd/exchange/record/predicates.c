/* Questions about attempts and jobs that many places ask, and that follow from their fields. */
#include "daemon/torusd/exchange/record/predicates.h"

#include <string.h>

bool attempt_is_open_group(const struct attempt *x)
{
    return kind_of(x)->has_session &&
           (!exchange_id_is_none(&x->resumes) || x->rounds.first_go_at != 0);
}

bool attempt_awaits_entry(const struct attempt *x)
{
    return kind_of(x)->is_entered && x->state == EXCHANGE_PREPARING;
}

bool attempt_all_entered(const struct attempt *x)
{
    return x->rounds.first_go_at != 0 || !exchange_id_is_none(&x->resumes);
}

bool job_has_been_open(const struct job *j)
{
    return kind_of_spec(&j->spec)->has_session &&
           (!exchange_id_is_none(&j->resumes) ||
            (j->attempt != NULL && j->attempt->rounds.first_go_at != 0));
}

bool job_awaits_restart(const struct job *j)
{
    return j->state == JOB_ENTERED && job_has_been_open(j);
}

const struct exchange_id *attempt_first_id(const struct attempt *x)
{
    return !exchange_id_is_none(&x->resumes) ? &x->resumes : &x->id;
}

bool attempt_may_be_followed(const struct attempt *x)
{
    return x->state == EXCHANGE_WITHDRAWN || state_of(x)->awaits_verdict ||
           (x->state == EXCHANGE_FAILED && x->failure.code == ERROR_BUSY && !attempt_is_root(x));
}

bool attempt_may_resume(const struct attempt *x)
{
    return x->avoids_links && x->spec.operation == OPERATION_EXCHANGE && x->spec.repeat == 1;
}

bool error_is_temporary(const struct error *e)
{
    return e->code == ERROR_LINK || e->code == ERROR_BUSY || e->code == ERROR_DAMAGED;
}

/* --- links and nodes that are down --- */

bool spec_avoids_links(const struct spec *spec)
{
    if (!kind_of_spec(spec)->has_blocks)
        return true; /* waves work over any tree */
    return spec->operation == OPERATION_EXCHANGE && !spec_has_schedule(spec) &&
           strcmp(spec->algorithm, SPEC_AUTO) == 0;
}

/* An attempt with spec.wait does not fail when a node or link that it needs goes down. Its root withdraws it,
 * as it does to avoid a link (abort/retry.c), and starts the next attempt when what it needs is up again, until
 * its timeout. So restarting a daemon other than the root's does not fail it. After the decision to commit, its
 * client also waits for nodes that are down, and hears of success when these have confirmed. */
bool attempt_waits_for_nodes(const struct attempt *x)
{
    return x->spec.wait && !attempt_is_open_group(x);
}

bool job_waits_for_nodes(const struct job *j)
{
    return j->spec.wait && !job_has_been_open(j);
}

bool attempt_survives_link_loss(const struct attempt *x)
{
    return x->avoids_links || attempt_waits_for_nodes(x);
}

bool job_survives_link_loss(const struct job *j)
{
    return spec_avoids_links(&j->spec) || job_waits_for_nodes(j);
}

/* --- the end --- */

unsigned job_closing(const struct job *j)
{
    return (j->attempt != NULL ? j->attempt->local.closing : 0) +
           (j->last != NULL ? j->last->local.closing : 0);
}

bool job_is_tellable(const struct job *j)
{
    return job_has_ended(j) && j->client_state == CLIENT_WAITING && job_closing(j) == 0;
}
