#include "daemon/torusd/group/calls/part_table.h"

#include <stdlib.h>

static void free_table(struct program_memory *memory)
{
    free(memory);
}

static struct program_memory *new_table(void)
{
    struct program_memory *memory = calloc(1, sizeof *memory + TABLE_BYTES);

    if (memory != NULL)
        *memory = (struct program_memory){(uint8_t *)(memory + 1), TABLE_BYTES, 1, free_table};
    return memory;
}

int part_table_call(struct checked_call *what, uint32_t mask, struct error *e)
{
    struct program_memory *memory = new_table();

    if (memory == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a group");
    *what = (struct checked_call){.call = {.operation = GROUP_PART,
                                           .part = mask,
                                           .type = REDUCTION_UINT8,
                                           .operator= REDUCTION_OR,
                                           .size = TABLE_BYTES,
                                           .in_place = true,
                                           .receive = {memory, 0, TABLE_BYTES}},
                                  .largest = TABLE_BYTES,
                                  .total = TABLE_BYTES};
    return 0;
}

bool part_table_is_made_here(const struct call *c)
{
    return c->what.call.operation == GROUP_PART && c->part->members.own == 0 &&
           !call_spreads_result(c);
}

int part_table_make(struct call *c, struct error *e)
{
    struct session *s = c->part->session;
    const struct predict_costs costs = exchanges_costs(s->groups->exchanges);
    struct part *p = part_find(s, c->what.call.part);
    struct algorithm_table made;
    int result = torus_is_plain(p->torus) ? 1 : part_detour(p, e);

    if (result > 0)
        result = algorithm_table_make(&made, p->planner, p->torus, &costs, p->detour, e);
    if (result <= 0)
        return result;
    algorithm_table_log(&made, s->name);
    if (algorithm_table_pack(&made, c->what.call.receive.memory->data, e) != 0)
        return -1;
    c->blocks.ready = true;
    engine_wake(c->attempt.engine[STAGE_DATA]);
    return 1;
}

int part_table_take(const struct call *c, struct error *e)
{
    struct session *s = c->part->session;
    uint32_t mask = c->what.call.part;
    struct part *p = part_find(s, mask);

    if (algorithm_table_unpack(&p->table, c->what.call.receive.memory->data, p->torus, e) != 0)
        return -1;
    p->has_table = true;
    session_is_due(s); /* calls may have waited for the table */
    return 0;
}
