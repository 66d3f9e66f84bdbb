#include "client/mpi/sharing.h"

#include "client/mpi/communicator.h"
#include "client/mpi/job.h"
#include "client/mpi/lanes.h"
#include "client/mpi/real.h"

static bool is_claimed[1u << JOB_DIMS];

static void claim(struct communicator *c)
{
    struct share *s = &c->share;
    int mine, all = false;

    s->asked = true;
    job_lock();
    mine = s->has_claimed = !is_claimed[c->dimensions];
    is_claimed[c->dimensions] = true;
    job_unlock();
    s->owns = real.Allreduce(&mine, &all, 1, mpi.integer, mpi.min, c->handle) == MPI_SUCCESS && all;
    if (!s->owns)
        sharing_forget(c);
}

enum reason sharing_enter(struct communicator *c)
{
    c->calls++;
    c->group = communicator_leads(c) ? lanes_part(0, c->dimensions) : NULL;
    if (job.threaded && !c->share.asked)
        claim(c);
    return !job.threaded || c->share.owns ? REASON_TAKEN : REASON_ORDER;
}

void sharing_forget(struct communicator *c)
{
    job_lock();
    if (c->share.has_claimed)
        is_claimed[c->dimensions] = false;
    c->share.has_claimed = false;
    job_unlock();
}
