/* All attempts that this node knows: by handle, and in the order in which they began or ended. */
#include "daemon/exchange/record/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/exchange/record/avoided.h"
#include "daemon/exchange/record/job.h"
#include "daemon/exchange/record/report.h"
#include "daemon/planning/schedule_store.h"

#define HANDLE_MASK 0x0fffffffu /* a handle has at most four bytes on the wire */

/* Removes an attempt from the table and from its list. */
static void take_out(struct attempt *x)
{
    struct exchanges *all = x->all;

    if (x->hh.tbl != NULL)
        HASH_DEL(all->table, x);
    if (state_of(x)->ended) {
        DL_DELETE(all->ended, x);
        all->ended_count--;
    } else {
        DL_DELETE(all->active, x);
        all->active_count--;
    }
}

void attempt_leave_schedule(struct attempt *x)
{
    avoided_leave_routes(x);
    if (x->schedule == NULL)
        return;
    schedules_leave(x->all->schedules, x->schedule);
    x->schedule = NULL;
    x->algorithm = NULL;
}

void attempt_forget(struct attempt *x)
{
    attempt_leave_schedule(x);
    if (x->all != NULL)
        take_out(x);
    avoided_drop(x);
    report_free(&x->report);
    spec_free(&x->spec);
    free(x->confirmed);
    free(x->doubt);
    free(x);
}

void attempt_let_go(struct attempt *x)
{
    if (x->own.closing == 0) {
        attempt_forget(x);
        return;
    }
    attempt_leave_schedule(x);
    take_out(x);
    x->all = NULL;
}

static bool is_taken(struct exchanges *all, uint32_t handle)
{
    const struct job *j = all->jobs;

    while (j != NULL && j->name.handle != handle)
        j = j->next;
    return j != NULL || attempt_find(all, handle) != NULL;
}

void attempt_new_name(struct exchanges *all, struct name *name)
{
    uint32_t nodes = router_torus(all->set.router)->nodes, rank = router_rank(all->set.router);
    uint32_t counter, handle;

    do {
        counter = ++all->counter;
        handle = (uint32_t)((uint64_t)counter * nodes + rank) & HANDLE_MASK;
    } while (is_taken(all, handle));
    name->handle = handle;
    name->id = exchange_id_make(rank, (uint32_t)router_boot(all->set.router), counter);
}

struct attempt *attempt_new(struct exchanges *all, const struct name *name, uint32_t root)
{
    struct attempt *x = calloc(1, sizeof *x);

    if (x == NULL)
        return NULL;
    x->all = all;
    x->state = EXCHANGE_STARTING;
    x->handle = name->handle;
    x->root = root;
    x->id = name->id;
    x->root_boot = router_topology(all->set.router)->entry[root].boot;
    x->named_at = x->began = router_now(all->set.router);
    HASH_ADD(hh, all->table, handle, sizeof x->handle, x);
    if (x->hh.tbl == NULL) {
        free(x);
        return NULL;
    }
    x->deadline = ROUTER_NEVER;
    x->fault = NO_FAULT;
    x->rounds.count = 1;
    DL_APPEND(all->active, x);
    all->active_count++;
    return x;
}

struct attempt *attempt_find(struct exchanges *all, uint32_t handle)
{
    struct attempt *x;

    HASH_FIND(hh, all->table, &handle, sizeof handle, x);
    return x;
}

struct attempt *attempt_find_id(const struct exchanges *all, const struct exchange_id *id)
{
    struct attempt *x = all->active;

    while (x != NULL && !exchange_id_equal(&x->id, id))
        x = x->next;
    if (x != NULL)
        return x;
    x = all->ended;
    while (x != NULL && !exchange_id_equal(&x->id, id))
        x = x->next;
    return x;
}

struct attempt *attempt_find_text(const struct exchanges *all, const char *text)
{
    struct exchange_id id;

    return exchange_id_parse(&id, text) == 0 ? attempt_find_id(all, &id) : NULL;
}
