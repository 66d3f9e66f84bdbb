/* The memory of an open group, which grows when its calls need it.
 *
 * A group is opened with little memory: each of its parts has the last level (GROUP_BASE_LEVEL), with which any call can be
 * carried out, if only in small rounds. Before the first call of a part that is large at this level, its members make a
 * call of their own (GROUP_GROW). Each member reserves what its node can give, without waiting, and offers the level that
 * this is enough for. All then have the level of the least offer, for the calls that follow, and give the rest back. The
 * group asks again after some more of such calls, at growing intervals, because memory may have become free.
 *
 * A call has the level that was agreed before it, also when it is made again: rounds and eager calls must be the same at
 * all members. Which calls ask depends only on the calls that the programs make, so all members ask before the same one. */
#include "daemon/torusd/group/memory.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"

#define ASK_AFTER 16u /* calls; twice as many each time, up to: */
#define ASK_AFTER_MOST 4096u
#define LEVEL_BYTES sizeof(uint64_t)

bool memory_is_wanted(struct part *p, const struct checked_call *what)
{
    struct part_level *l = &p->level;

    if (!p->session->grows || (!what->collective->measured && what->total <= l->base_eager))
        return false;
    if (l->wanted++ != l->ask_at)
        return false;
    l->ask_after = l->ask_after == 0               ? ASK_AFTER
                   : l->ask_after < ASK_AFTER_MOST ? 2 * l->ask_after
                                                   : ASK_AFTER_MOST;
    l->ask_at += l->ask_after;
    return true;
}

static void free_memory(struct program_memory *memory)
{
    free(memory);
}

int memory_call(struct checked_call *what, struct error *e)
{
    struct program_memory *memory = calloc(1, sizeof *memory + LEVEL_BYTES);

    if (memory == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a call");
    *memory = (struct program_memory){(uint8_t *)(memory + 1), LEVEL_BYTES, 1, free_memory};
    *what = (struct checked_call){.call = {.operation = (enum group_operation)GROUP_GROW,
                                           .type = REDUCTION_UINT64,
                                           .operator= REDUCTION_MAX,
                                           .size = 1,
                                           .in_place = true,
                                           .receive = {memory, 0, LEVEL_BYTES}},
                                  .collective = &collective_grow,
                                  .largest = LEVEL_BYTES,
                                  .total = LEVEL_BYTES};
    return 0;
}

static uint64_t bytes_at(const struct part *p, unsigned level)
{
    return part_memory(router_torus(p->session->base.set.router), p->torus, level);
}

void memory_offer(struct call *c)
{
    struct part *p = c->part;
    struct session *s = p->session;
    const uint64_t has = bytes_at(p, p->level.reserved);
    struct error e = {0};
    uint64_t offer;

    for (unsigned level = 0; level < p->level.reserved; level++)
        if (s->memory.take(s->events.context, bytes_at(p, level) - has, &e) == 0)
            p->level.reserved = level;
    if (p->level.reserved > 0)
        log_debug("group \"%s\", part 0x%x: continues with 1/%u of the memory that it may have: %s",
                  s->name, p->mask, 1u << p->level.reserved, e.text);
    offer = p->level.reserved;
    memcpy(c->what.call.receive.memory->data, &offer, sizeof offer);
}

int memory_take(struct call *c, struct error *e)
{
    struct part *p = c->part;
    struct session *s = p->session;
    uint64_t level;

    memcpy(&level, c->what.call.receive.memory->data, sizeof level);
    if (level < p->level.reserved || level > p->level.agreed)
        return error_set(e, ERROR_PROTOCOL,
                         "group \"%s\": members agree on level %llu of memory, but member %u has "
                         "level %u, and offered level %u",
                         s->name, (unsigned long long)level, p->members.own, p->level.agreed,
                         p->level.reserved);
    s->memory.give(s->events.context,
                   bytes_at(p, p->level.reserved) - bytes_at(p, (unsigned)level));
    p->level.reserved = p->level.agreed = (unsigned)level;
    session_is_due(s); /* calls may have waited for the level */
    return 0;
}
