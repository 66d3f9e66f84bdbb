#include "daemon/lib/host/gathering.h"

#include <stdint.h>
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

/* Frees the copies of the texts. */
static void forget(struct gathering *g)
{
    for (size_t i = 0; i < g->setup.folders; i++)
        free((char *)(uintptr_t)g->setup.folder[i]);
    g->setup.folders = 0;
    free(g->settings);
    g->settings = NULL;
}

static void on_done(struct work *work)
{
    struct gathering *g = gathering_of(work);
    struct facts *facts = g->facts;

    g->facts = NULL;
    forget(g);
    if (!g->stopped)
        g->done(g->context, facts->text);
    free(facts);
}

static int copy_texts(struct gathering *g, const char *settings, const struct gather_setup *setup)
{
    g->settings = strdup(settings);
    if (g->settings == NULL)
        return -1;
    for (size_t i = 0; i < setup->folders; i++) {
        char *copy = strdup(setup->folder[i]);
        if (copy == NULL)
            return -1;
        g->setup.kind[i] = setup->kind[i];
        g->setup.folder[i] = copy;
        g->setup.folders++;
    }
    g->setup.past = g->past;
    return 0;
}

void gathering_start(struct gathering *g, const char *settings, const struct gather_setup *setup)
{
    if (g->facts != NULL)
        return;
    g->facts = malloc(sizeof *g->facts);
    g->work = (struct work){.run = on_run, .done = on_done};
    if (g->facts != NULL && copy_texts(g, settings, setup) == 0 &&
        workers_submit(g->workers, &g->work) == 0)
        return;
    forget(g);
    free(g->facts);
    g->facts = NULL;
    g->done(g->context, "");
}

static struct gathering *noting_of(struct work *work)
{
    return (struct gathering *)(void *)((char *)work - offsetof(struct gathering, noting_work));
}

static void run_noting(struct work *work)
{
    past_note(noting_of(work)->past);
}

static void end_noting(struct work *work)
{
    noting_of(work)->noting = false;
}

void gathering_note(struct gathering *g)
{
    if (g->noting || g->past == NULL)
        return;
    g->noting_work = (struct work){.run = run_noting, .done = end_noting};
    g->noting = workers_submit(g->workers, &g->noting_work) == 0;
}

void gathering_stop(struct gathering *g)
{
    g->stopped = true;
}
