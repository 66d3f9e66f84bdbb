#include "daemon/host/gathering.h"

#include <stdlib.h>
#include <string.h>

static struct gathering *gathering_of(struct work *work)
{
    return (struct gathering *)(void *)((char *)work - offsetof(struct gathering, work));
}

static void on_run(struct work *work)
{
    struct gathering *g = gathering_of(work);

    gather_facts(g->facts, g->settings, &g->setup);
}

static void on_done(struct work *work)
{
    struct gathering *g = gathering_of(work);
    struct facts *facts = g->facts;

    g->facts = NULL;
    if (!g->stopped)
        g->done(g->context, facts->text);
    free(facts);
}

void gathering_start(struct gathering *g)
{
    if (g->facts != NULL)
        return;
    g->facts = malloc(sizeof *g->facts);
    g->work = (struct work){.run = on_run, .done = on_done};
    if (g->facts != NULL && workers_submit(g->workers, &g->work) == 0)
        return;
    free(g->facts);
    g->facts = NULL;
    g->done(g->context, "");
}

void gathering_stop(struct gathering *g)
{
    g->stopped = true;
}
