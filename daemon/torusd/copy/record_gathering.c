#include "daemon/torusd/copy/record_gathering.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/copy/memory.h"

static int fail(struct agent *a, const struct error *e)
{
    record_gathering_end(a);
    agent_fail(a, e);
    return -1;
}

static int fail_for_memory(struct agent *a)
{
    struct error e;

    (void)error_set(&e, ERROR_MEMORY, "node %u has no memory for the copy", agent_rank(a));
    (void)error_blame_node(&e, agent_rank(a));
    return fail(a, &e);
}

void record_gathering_end(struct agent *a)
{
    struct record_gathering *g = &a->gathering;

    program_memory_unref(g->memory);
    free(g->record);
    free(g->lengths);
    free(g->offsets);
    *g = (struct record_gathering){0};
}

/* What this node has left out, and can take at once. */
static void describe_node(const struct agent *a, struct record_of_node *self)
{
    *self = (struct record_of_node){
        .call_bytes = a->call_bytes, .first_left_out = "", .first_link_out = ""};
    for (uint32_t i = 0; i < a->plan.trees; i++) {
        const struct copy_tree *tree = &a->plan.tree[i];
        const char *first = "";
        if (tree->r == NULL)
            continue;
        self->left_out += a->set.trees->left_out(tree->r, &first);
        if (self->first_left_out[0] == '\0')
            self->first_left_out = first;
        self->links_out += a->set.trees->links_out(tree->r, &first);
        if (self->first_link_out[0] == '\0')
            self->first_link_out = first;
    }
}

int record_gathering_begin(struct agent *a, enum record_kind kind)
{
    struct record_gathering *g = &a->gathering;
    struct record_of_node self;
    struct record_bytes record;
    struct error e;

    describe_node(a, &self);
    if (records_write(&a->plan, kind, agent_rank(a), &self, &record, &e) != 0) {
        (void)error_blame_node(&e, agent_rank(a));
        agent_fail(a, &e);
        return -1;
    }
    *g = (struct record_gathering){.state = GATHERING_LENGTHS,
                                   .record = record.data,
                                   .length = record.length,
                                   .lengths = calloc(a->members, sizeof *g->lengths),
                                   .offsets = calloc(a->members, sizeof *g->offsets),
                                   .memory = copy_memory_new(8 + 8 * (uint64_t)a->members)};
    if (g->memory == NULL || g->lengths == NULL || g->offsets == NULL)
        return fail_for_memory(a);
    const uint64_t length = htole64(g->length);
    memcpy(g->memory->data, &length, sizeof length);
    const struct group_call call = {.operation = GROUP_ALLGATHER,
                                    .size = 8,
                                    .send = {g->memory, 0, 8},
                                    .receive = {g->memory, 8, 8 * (uint64_t)a->members}};
    return agent_call(a, &call, GATHERING_CALL);
}

/* Takes the lengths, and begins to gather the records. */
static int gather_bytes(struct agent *a)
{
    struct record_gathering *g = &a->gathering;
    uint64_t all = 0;
    struct error e;

    for (uint32_t i = 0; i < a->members; i++) {
        uint64_t length;
        memcpy(&length, g->memory->data + 8 + 8 * (size_t)i, sizeof length);
        g->lengths[i] = le64toh(length);
        g->offsets[i] = all;
        if (g->lengths[i] > RECORD_MOST || all + g->lengths[i] > RECORDS_MOST) {
            (void)error_set(&e, ERROR_PROTOCOL, "node %u tells too much of a copy", a->node[i]);
            (void)error_blame_node(&e, a->node[i]);
            return fail(a, &e);
        }
        all += g->lengths[i];
    }
    program_memory_unref(g->memory);
    g->memory = copy_memory_new(g->length + all);
    if (g->memory == NULL)
        return fail_for_memory(a);
    memcpy(g->memory->data, g->record, g->length);
    g->state = GATHERING_BYTES;
    const struct group_call call = {.operation = GROUP_ALLGATHERV,
                                    .send = {g->memory, 0, g->length},
                                    .receive = {g->memory, g->length, all},
                                    .receive_size = g->lengths,
                                    .receive_offset = g->offsets};
    return agent_call(a, &call, GATHERING_CALL);
}

int record_gathering_called(struct agent *a, enum record_kind kind)
{
    struct record_gathering *g = &a->gathering;
    struct error e;

    if (g->state == GATHERING_LENGTHS)
        return gather_bytes(a);
    for (uint32_t i = 0; i < a->members; i++)
        if (records_read(&a->plan, kind, a->node[i], g->memory->data + g->length + g->offsets[i],
                         g->lengths[i], &e) != 0)
            return fail(a, &e);
    record_gathering_end(a);
    return 1;
}
