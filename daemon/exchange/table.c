/* All exchanges that this node knows: by handle, and in the order of their beginning or end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/exchange/internal.h"

#define HANDLE_MASK 0x0fffffffu /* four bytes on the wire */

/* Out of the table and its list. */
static void take_out(struct exchange *x)
{
    struct exchanges *all = x->all;

    if (x->hh.tbl != NULL)
        HASH_DEL(all->table, x);
    if (exchange_has_ended(x->state)) {
        DL_DELETE(all->ended, x);
        all->ended_count--;
    } else {
        DL_DELETE(all->active, x);
        all->active_count--;
    }
}

void exchange_leave_schedule(struct exchange *x)
{
    around_leave_routes(x);
    if (x->schedule == NULL)
        return;
    schedules_leave(x->all->schedules, x->schedule);
    x->schedule = NULL;
    x->algorithm = NULL;
}

void exchange_forget(struct exchange *x)
{
    exchange_leave_schedule(x);
    if (x->all != NULL)
        take_out(x);
    around_drop(x);
    report_free(&x->report);
    spec_free(&x->spec);
    free(x->rounds.each);
    free(x->confirmed);
    free(x->doubt);
    free(x);
}

void exchange_let_go(struct exchange *x)
{
    if (x->own.closing == 0) {
        exchange_forget(x);
        return;
    }
    exchange_leave_schedule(x);
    take_out(x);
    x->all = NULL;
}

static void name(struct exchange *x, uint32_t handle, const char *id, uint32_t root)
{
    x->handle = handle;
    x->root = root;
    (void)snprintf(x->id, sizeof x->id, "%s", id);
    x->id_boot = 0;
    (void)sscanf(id, "%*u-%x-", &x->id_boot);
    x->root_boot = router_topology(router_of(x))->entry[root].boot;
    x->named_at = router_now(router_of(x));
    HASH_ADD(hh, x->all->table, handle, sizeof x->handle, x);
}

void exchange_new_name(struct exchanges *all, char id[EXCHANGE_ID_SIZE], uint32_t *handle)
{
    uint32_t nodes = router_torus(all->set.router)->nodes, rank = router_rank(all->set.router);
    uint32_t counter;

    do {
        counter = ++all->counter;
        *handle = (uint32_t)((uint64_t)counter * nodes + rank) & HANDLE_MASK;
    } while (exchange_find(all, *handle) != NULL);
    (void)snprintf(id, EXCHANGE_ID_SIZE, "%u-%08" PRIx32 "-%u", rank,
                   (uint32_t)router_boot(all->set.router), counter);
}

int exchange_rename(struct exchange *x, uint32_t handle, const char *id, uint32_t root)
{
    uint32_t old_handle = x->handle, old_root = x->root;
    char old_id[EXCHANGE_ID_SIZE];

    (void)snprintf(old_id, sizeof old_id, "%s", x->id);
    if (x->hh.tbl != NULL)
        HASH_DEL(x->all->table, x);
    name(x, handle, id, root);
    if (x->hh.tbl != NULL)
        return 0;
    name(x, old_handle, old_id, old_root);
    return -1;
}

struct exchange *exchange_add(struct exchanges *all, uint32_t handle, const char *id, uint32_t root)
{
    struct exchange *x = calloc(1, sizeof *x);

    if (x == NULL)
        return NULL;
    x->all = all;
    name(x, handle, id, root);
    if (x->hh.tbl == NULL) {
        free(x);
        return NULL;
    }
    x->began = router_now(all->set.router);
    x->deadline = ROUTER_NEVER;
    x->fault = NO_FAULT;
    x->rounds.count = 1;
    DL_APPEND(all->active, x);
    all->active_count++;
    return x;
}

struct exchange *exchange_find(struct exchanges *all, uint32_t handle)
{
    struct exchange *x;

    HASH_FIND(hh, all->table, &handle, sizeof handle, x);
    return x;
}

struct exchange *exchange_find_id(const struct exchanges *all, const char *id)
{
    struct exchange *x = all->active;

    while (x != NULL && strcmp(x->id, id) != 0)
        x = x->next;
    if (x != NULL)
        return x;
    x = all->ended;
    while (x != NULL && strcmp(x->id, id) != 0)
        x = x->next;
    return x;
}
