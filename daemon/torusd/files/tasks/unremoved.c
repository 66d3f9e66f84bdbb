#include "daemon/torusd/files/tasks/unremoved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/files/tasks/outcomes.h"
#include "daemon/torusd/files/tasks/tasks.h"

#define UNREMOVED_MOST 64 /* most outputs in the list; the next start finds the others */

/* An output that could not be removed completely. */
struct unremoved {
    struct unremoved *next;
    char id[sizeof((struct target *)0)->id];
    bool trying;
};

static void on_removed(void *argument, const char *id, const struct error *e)
{
    struct folders *folders = argument;
    struct unremoved **at = &folders->unremoved, *u;

    while (strcmp((*at)->id, id) != 0)
        at = &(*at)->next;
    u = *at;
    u->trying = false;
    if (e != NULL) {
        log_warning("exchange %s: %s", id, e->text);
        return;
    }
    log_info("exchange %s: its unfinished output has been removed", id);
    *at = u->next;
    free(u);
}

void unremoved_add(struct folders *folders, const char *id)
{
    struct unremoved *u = folders->unremoved;
    unsigned count = 0;

    for (; u != NULL && strcmp(u->id, id) != 0; u = u->next)
        count++;
    if (u != NULL || count == UNREMOVED_MOST || (u = calloc(1, sizeof *u)) == NULL)
        return; /* the next start finds it */
    (void)snprintf(u->id, sizeof u->id, "%s", id);
    u->next = folders->unremoved;
    folders->unremoved = u;
}

void unremoved_retry(struct folders *folders)
{
    for (struct unremoved *u = folders->unremoved; u != NULL; u = u->next)
        if (!u->trying && !open_sinks_have(folders->sinks, u->id)) {
            const struct task values = tasks_values(u->id, on_removed, folders);
            u->trying = tasks_begin(folders, outcomes_run, &values) != NULL;
        }
}

void unremoved_free(struct folders *folders)
{
    while (folders->unremoved != NULL) {
        struct unremoved *u = folders->unremoved;
        folders->unremoved = u->next;
        free(u);
    }
}
