#include "tests/unit/standin_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct queued {
    struct queued *next;
    uint64_t name;
    struct group_call call;
    uint64_t *counts;
    uint32_t members, rank;
};

struct group {
    struct groups *all;
    struct group *next;
    struct group_client client;
    char name[GROUP_NAME_SIZE];
    bool opened, failed, shrinks;
    struct error why;
    struct queued *first;
};

static void free_queued(struct queued *q)
{
    program_memory_unref(q->call.send.memory);
    program_memory_unref(q->call.receive.memory);
    free(q->counts);
    free(q);
}

static void remove_group(struct group *g)
{
    struct group **at = &g->all->first;

    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    g->all->groups--;
    while (g->first != NULL) {
        struct queued *q = g->first;
        g->first = q->next;
        free_queued(q);
    }
    free(g);
}

struct group *group_open(struct groups *all, const struct group_options *options,
                         const struct group_client *client, struct error *e)
{
    struct group *g;

    for (g = all->first; g != NULL; g = g->next)
        if (strcmp(g->name, options->name) == 0) {
            (void)error_set(e, ERROR_REFUSED, "a program of node %u has group \"%s\" open",
                            all->rank, g->name);
            return NULL;
        }
    g = calloc(1, sizeof *g);
    if (g == NULL)
        abort();
    g->all = all;
    g->client = *client;
    (void)snprintf(g->name, sizeof g->name, "%s", options->name);
    g->shrinks = options->shrink;
    g->next = all->first;
    all->first = g;
    all->groups++;
    return g;
}

void group_close(struct group *group)
{
    group->all->closed++;
    remove_group(group);
}

void group_abandon(struct group *group, const struct error *why)
{
    group->all->abandoned++;
    group->all->why = *why;
    remove_group(group);
}

uint32_t groups_rank(const struct groups *all)
{
    return all->rank;
}

const struct torus *groups_torus(const struct groups *all)
{
    return &all->torus;
}

const bool *group_left_out(const struct group *group)
{
    return group->shrinks ? group->all->gone : NULL;
}

uint32_t group_missing(const struct group *group, char *list, size_t size)
{
    (void)snprintf(list, size, "%s", group->all->missing != NULL ? group->all->missing : "");
    return group->all->missing != NULL ? group->all->missing_count : 0;
}

uint32_t group_members(const struct group *group)
{
    uint32_t members = group->all->torus.nodes;

    for (uint32_t node = 0; group->all->gone != NULL && node < group->all->torus.nodes; node++)
        members -= group->shrinks && group->all->gone[node];
    return members;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void ref(struct program_memory *memory)
{
    if (memory != NULL)
        (void)program_memory_ref(memory);
}

/* The members of a part, and the number of this member. */
static int count_members(const struct group *g, uint32_t part, struct queued *q, struct error *e)
{
    uint32_t coordinate[TORUS_MAX_DIMS];

    if (part == 0 || part >> g->all->torus.dims != 0)
        return error_set(e, ERROR_USAGE, "no such part");
    torus_coordinates(&g->all->torus, g->all->rank, coordinate);
    if (group_left_out(g) != NULL && part == (1u << g->all->torus.dims) - 1) {
        q->members = group_members(g);
        for (uint32_t node = 0; node < g->all->rank; node++)
            q->rank += !g->all->gone[node];
        return 0;
    }
    q->members = 1;
    for (unsigned d = 0; d < g->all->torus.dims; d++)
        if ((part >> d & 1) != 0) {
            q->members *= g->all->torus.size[d];
            q->rank = q->rank * g->all->torus.size[d] + coordinate[d];
        }
    return 0;
}

/* Reads all bytes, so that sanitizers notice bytes that do not belong to the caller. */
static int copy_counts(struct queued *q, struct error *e)
{
    const uint64_t *const from[4] = {q->call.send_size, q->call.send_offset, q->call.receive_size,
                                     q->call.receive_offset};

    q->counts = calloc(4u * q->members, sizeof *q->counts);
    if (q->counts == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    for (unsigned k = 0; k < 4; k++)
        if (from[k] != NULL)
            memcpy(q->counts + k * q->members, from[k], q->members * sizeof *q->counts);
    return 0;
}

static bool lies_in(uint64_t offset, uint64_t size, const struct program_area *area)
{
    return size == 0 || (offset <= area->size && size <= area->size - offset);
}

static int check_blocks(const struct queued *q, const uint64_t *size, const uint64_t *offset,
                        const struct program_area *area, struct error *e)
{
    for (uint32_t i = 0; i < q->members; i++)
        if (!lies_in(offset[i], size[i], area))
            return error_set(e, ERROR_USAGE, "block %u does not lie in its area", i);
    return 0;
}

static int check_areas(const struct queued *q, uint64_t send, uint64_t receive, struct error *e)
{
    if (!q->call.in_place && q->call.send.size != send)
        return error_set(e, ERROR_USAGE, "the send area has the wrong size");
    if (q->call.receive.size != receive)
        return error_set(e, ERROR_USAGE, "the receive area has the wrong size");
    return 0;
}

static bool may_be_in_place(const struct queued *q)
{
    switch (q->call.operation) {
    case GROUP_ALLGATHER:
    case GROUP_ALLGATHERV:
    case GROUP_ALLREDUCE:
        return true;
    default:
        return (q->call.operation == GROUP_REDUCE || q->call.operation == GROUP_GATHER ||
                q->call.operation == GROUP_SCATTER) &&
               q->call.root == q->rank;
    }
}

static int check_scattered(const struct queued *q, const uint64_t *size, struct error *e)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < q->members; i++)
        if (size[i] > UINT32_MAX)
            return error_set(e, ERROR_USAGE, "too large");
        else
            all += size[i];
    return all * 8 >= q->call.send.size
               ? 0
               : error_set(e, ERROR_USAGE, "the send area has the wrong size");
}

static int check(const struct queued *q, struct error *e)
{
    const struct group_call *c = &q->call;
    const uint64_t *send_size = q->counts, *send_offset = q->counts + q->members;
    const uint64_t *size = q->counts + 2 * q->members, *offset = q->counts + 3 * q->members;
    uint64_t element = c->type >= 1 && c->type <= 10 ? UINT64_C(1) : 0;

    if (c->in_place && !may_be_in_place(q))
        return error_set(e, ERROR_USAGE, "not in place");
    switch (c->operation) {
    case GROUP_ALLTOALL:
        if (c->size > UINT64_MAX / q->members)
            return error_set(e, ERROR_USAGE, "too large");
        return check_areas(q, c->size * q->members, c->size * q->members, e);
    case GROUP_ALLTOALLV:
        if (check_blocks(q, send_size, send_offset, &c->send, e) != 0)
            return -1;
        return check_blocks(q, size, offset, &c->receive, e);
    case GROUP_ALLGATHER:
        if (c->size > UINT64_MAX / q->members)
            return error_set(e, ERROR_USAGE, "too large");
        return check_areas(q, c->size, c->size * q->members, e);
    case GROUP_GATHER:
        if (c->root >= q->members || c->size > UINT64_MAX / q->members)
            return error_set(e, ERROR_USAGE, "no such root, or too large");
        return check_areas(q, c->size, c->root == q->rank ? c->size * q->members : 0, e);
    case GROUP_SCATTER:
        if (c->root >= q->members || c->size > UINT64_MAX / q->members)
            return error_set(e, ERROR_USAGE, "no such root, or too large");
        return check_areas(q, c->root == q->rank ? c->size * q->members : 0,
                           c->in_place ? c->size * q->members : c->size, e);
    case GROUP_ALLGATHERV:
        if (!c->in_place && c->send.size != size[q->rank])
            return error_set(e, ERROR_USAGE, "the send area has the wrong size");
        return check_blocks(q, size, offset, &c->receive, e);
    case GROUP_BROADCAST:
        if (c->root >= q->members)
            return error_set(e, ERROR_USAGE, "no such root");
        return check_areas(q, 0, c->size, e);
    case GROUP_ALLREDUCE:
        if (element == 0 || c->operator<1 || c->operator> 7)
            return error_set(e, ERROR_USAGE, "no such type or operator");
        return check_areas(q, c->receive.size, c->receive.size, e);
    case GROUP_REDUCE:
        if (c->root >= q->members)
            return error_set(e, ERROR_USAGE, "no such root");
        if (element == 0 || c->operator<1 || c->operator> 7)
            return error_set(e, ERROR_USAGE, "no such type or operator");
        return c->root == q->rank ? check_areas(q, c->receive.size, c->receive.size, e)
                                  : check_areas(q, c->send.size, 0, e);
    case GROUP_REDUCE_SCATTER:
        if (element == 0 || c->operator<1 || c->operator> 7)
            return error_set(e, ERROR_USAGE, "no such type or operator");
        return check_scattered(q, size, e);
    case GROUP_BARRIER:
    case GROUP_PART:
        return check_areas(q, 0, 0, e);
    }
    return error_set(e, ERROR_USAGE, "no such operation");
}

int group_call(struct group *group, const struct group_call *call, uint64_t name, struct error *e)
{
    struct queued *q = calloc(1, sizeof *q), **at = &group->first;

    if (q == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    q->name = name;
    q->call = *call;
    ref(q->call.send.memory);
    ref(q->call.receive.memory);
    if (group->failed || count_members(group, call->part, q, e) != 0 || copy_counts(q, e) != 0 ||
        check(q, e) != 0) {
        if (group->failed)
            *e = group->why;
        free_queued(q);
        return -1;
    }
    group->all->calls++;
    group->all->last = *call;
    group->all->last_counts = 0;
    for (uint32_t i = 0; i < 4 * q->members; i++)
        group->all->last_counts += q->counts[i];
    while (*at != NULL)
        at = &(*at)->next;
    *at = q;
    return 0;
}

/* The other member is there at once, and sends 'm'. */
int group_message(struct group *group, const struct member_message *message, uint64_t name,
                  struct error *e)
{
    struct queued *q = calloc(1, sizeof *q), **at = &group->first;

    if (q == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    q->name = name;
    q->call.operation = (enum group_operation)(message->sends ? GROUP_SEND : GROUP_RECEIVE);
    q->call.root = message->peer;
    q->call.size = message->tag;
    *(message->sends ? &q->call.send : &q->call.receive) = message->area;
    ref(message->area.memory);
    group->all->calls++;
    group->all->last = q->call;
    while (*at != NULL)
        at = &(*at)->next;
    *at = q;
    return 0;
}

static uint8_t *at(const struct program_area *area, uint64_t offset)
{
    return area->memory->data + area->offset + offset;
}

static void copy(const struct queued *q, uint64_t to, uint64_t from, uint64_t bytes)
{
    if (bytes > 0 && !q->call.in_place && lies_in(to, bytes, &q->call.receive) &&
        lies_in(from, bytes, &q->call.send))
        memmove(at(&q->call.receive, to), at(&q->call.send, from), bytes);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Every member sends the data of this one. */
static void carry_out(const struct queued *q)
{
    const struct group_call *c = &q->call;
    const uint64_t *n = q->counts;
    uint32_t m = q->members;
    uint64_t before = 0, all = 0;

    switch ((uint32_t)c->operation) {
    case GROUP_RECEIVE:
        if (c->receive.size > 0)
            memset(at(&c->receive, 0), 'm', c->receive.size);
        break;
    case GROUP_ALLTOALL:
    case GROUP_ALLREDUCE:
    case GROUP_REDUCE:
        copy(q, 0, 0, c->receive.size);
        break;
    case GROUP_ALLTOALLV:
        for (uint32_t i = 0; i < m; i++)
            copy(q, n[3 * m + i], n[m + i], smaller(n[i], n[2 * m + i]));
        break;
    case GROUP_ALLGATHER:
        for (uint32_t i = 0; i < m; i++)
            copy(q, i * c->size, 0, c->size);
        break;
    case GROUP_GATHER:
        for (uint32_t i = 0; i < m && q->rank == c->root; i++)
            copy(q, i * c->size, 0, c->size);
        break;
    case GROUP_ALLGATHERV:
        for (uint32_t i = 0; i < m; i++)
            copy(q, n[3 * m + i], 0, smaller(n[2 * m + i], c->send.size));
        break;
    case GROUP_SCATTER: /* another root sends 's' */
        if (q->rank == c->root && !c->in_place)
            copy(q, 0, q->rank * c->size, c->size);
        else if (q->rank != c->root && c->size > 0)
            memset(at(&c->receive, 0), 's', c->size);
        break;
    case GROUP_BROADCAST:
        if (q->rank != c->root && c->size > 0)
            memset(at(&c->receive, 0), 'b', c->size);
        break;
    case GROUP_REDUCE_SCATTER:
        for (uint32_t i = 0; i < m; i++) {
            before += i < q->rank ? n[2 * m + i] : 0;
            all += n[2 * m + i];
        }
        if (all > 0) {
            uint64_t element = c->send.size / all, mine = n[2 * m + q->rank] * element;
            copy(q, 0, before * element, mine);
        }
        break;
    case GROUP_BARRIER:
    case GROUP_PART:
        break;
    }
}

static bool is_message(const struct queued *q)
{
    return (uint32_t)q->call.operation == GROUP_SEND ||
           (uint32_t)q->call.operation == GROUP_RECEIVE;
}

static void end_call(struct group *g, struct queued **place, const struct error *e)
{
    struct queued *q = *place;
    uint64_t name = q->name;
    const bool from_any = q->call.operation == (enum group_operation)GROUP_RECEIVE &&
                          q->call.root == GROUP_ANY_MEMBER;

    *place = q->next;
    if (e == NULL)
        carry_out(q);
    free_queued(q);
    if (from_any && e == NULL)
        g->client.received(g->client.context, name, STANDIN_SENDER);
    g->client.called(g->client.context, name, e);
}

/* Returns whether anything was due. */
static bool run_one(struct group *g)
{
    struct queued **first = &g->first;

    if (g->failed) {
        const struct group_client client = g->client;
        const struct error why = g->why;
        while (g->first != NULL)
            end_call(g, &g->first, &why);
        remove_group(g);
        client.ended(client.context, &why);
        return true;
    }
    if (!g->opened && !g->all->holds_open) {
        g->opened = true;
        g->client.opened(g->client.context, g);
        return true;
    }
    while (*first != NULL && g->all->holds_messages && is_message(*first))
        first = &(*first)->next;
    if (*first == NULL || g->all->holds)
        return false;
    end_call(g, first, NULL);
    return true;
}

void standin_run(struct groups *all)
{
    for (struct group *g = all->first; g != NULL;)
        g = run_one(g) ? all->first : g->next;
}

void standin_fail(struct groups *all, enum error_code code, const char *text)
{
    for (struct group *g = all->first; g != NULL; g = g->next) {
        g->failed = true;
        (void)error_set(&g->why, code, "%s", text);
    }
}
