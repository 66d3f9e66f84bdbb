/* Takes the calls of programs from their pages. */
#include "daemon/torusd/program/program.h"

#include <stdlib.h>

#include "proto/text.h"

/* Finds the memory of that number, if it has `size` bytes at `offset`; NULL with 0 for an empty area. */
static int find_area(const struct program *p, uint32_t number, uint64_t offset, uint64_t size,
                     struct program_area *area, struct error *e)
{
    struct program_memory *memory;

    *area = (struct program_area){NULL, 0, 0};
    if (number == 0 && size == 0)
        return 0;
    memory = number > 0 && number <= PROGRAM_MEMORIES ? p->memory[number - 1] : NULL;
    if (memory == NULL)
        return error_set(e, ERROR_USAGE, "the program has no shared memory %u", number);
    if (offset > memory->size || size > memory->size - offset)
        return error_set(
            e, ERROR_USAGE,
            "%llu %s at offset %llu %s not lie in shared memory %u, which has %llu bytes",
            (unsigned long long)size, text_plural(size, "byte", "bytes"),
            (unsigned long long)offset, text_plural(size, "does", "do"), number,
            (unsigned long long)memory->size);
    *area = (struct program_area){memory, offset, size};
    return 0;
}

/* Returns the number of members of a part, or 0 if there is no such part. */
static uint32_t part_size(const struct program *p, uint32_t part)
{
    const struct torus *torus = groups_torus(p->programs->set.groups);
    uint32_t size = 1;

    if (part == 0 || part >> torus->dims != 0)
        return 0;
    if (part == (1u << torus->dims) - 1)
        return group_members(p->group);
    for (unsigned d = 0; d < torus->dims; d++)
        if ((part >> d & 1) != 0)
            size *= torus->size[d];
    return size;
}

/* Copies the arrays, and makes the call point to the copies. */
static int take_counts(struct program *p, const struct program_request *r, struct group_call *call,
                       struct error *e)
{
    struct programs *programs = p->programs;
    const unsigned arrays = group_operation_arrays(r->operation);
    const unsigned count = (unsigned)__builtin_popcount(arrays);
    const uint64_t **array[GROUP_ARRAYS] = {&call->send_size, &call->send_offset,
                                            &call->receive_size, &call->receive_offset};
    const uint64_t members = part_size(p, r->part);
    struct program_area area;

    if (members == 0)
        return error_set(e, ERROR_USAGE, "the torus has no part with dimensions 0x%x", r->part);
    if (count == 0)
        return 0;
    if (find_area(p, r->counts_memory, r->counts_offset, count * members * sizeof *programs->counts,
                  &area, e) != 0)
        return -1;
    if (programs->counts_room < count * members) {
        uint64_t *room = reallocarray(programs->counts, count * members, sizeof *room);
        if (room == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory for the sizes of a call");
        programs->counts = room;
        programs->counts_room = count * members;
    }
    memory_copy_once(programs->counts, area.memory->data + area.offset,
                     count * members * sizeof *programs->counts);
    const uint64_t *at = programs->counts;
    for (unsigned i = 0; i < GROUP_ARRAYS; i++)
        if ((arrays & 1u << i) != 0) {
            *array[i] = at;
            at += members;
        }
    return 0;
}

/* Begins a message to another member, or from it. */
static int take_message(const struct program *p, const struct program_request *r, uint32_t number,
                        struct error *e)
{
    struct member_message message = {.sends = r->operation == GROUP_SEND,
                                     .peer = r->operation == GROUP_RECEIVE_ANY ? GROUP_ANY_MEMBER
                                                                               : r->root,
                                     .part = r->part,
                                     .tag = r->counts_offset,
                                     .timeout_ns = r->timeout_ns};
    const int found =
        message.sends
            ? find_area(p, r->send_memory, r->send_offset, r->send_size, &message.area, e)
            : find_area(p, r->receive_memory, r->receive_offset, r->receive_size, &message.area, e);

    return found == 0 ? group_message(p->group, &message, number, e) : -1;
}

/* Makes the call. Checks only what group_call() does not know. */
static int take_call(struct program *p, const struct program_request *r, uint32_t number,
                     struct error *e)
{
    struct group_call call = {
        .operation = (enum group_operation)r->operation,
        .part = r->part,
        .root = r->root,
        .type = (enum reduction_type)r->type,
        .operator=(enum reduction_operator) r->operator,
        .size = r->size,
        .in_place = r->in_place != 0,
        .timeout_ns = r->timeout_ns,
        .late_ns = r->late_ms * MILLISECONDS,
        .data = p->version >= 2 ? r->data : (struct data_kind){0},
    };

    if (r->operation >= GROUP_SEND && r->operation <= GROUP_RECEIVE_ANY)
        return take_message(p, r, number, e);
    if (!group_operation_exists(r->operation))
        return error_set(e, ERROR_USAGE, "the daemon does not know operation %u", r->operation);
    if (find_area(p, r->send_memory, r->send_offset, r->send_size, &call.send, e) != 0 ||
        find_area(p, r->receive_memory, r->receive_offset, r->receive_size, &call.receive, e) !=
            0 ||
        take_counts(p, r, &call, e) != 0)
        return -1;
    return group_call(p->group, &call, number, e);
}

static int take_next(struct program *p)
{
    const uint32_t number = p->taken, slot = number % PROGRAM_CALLS;
    const uint64_t bit = UINT64_C(1) << slot;
    struct program_request request;
    struct error e;

    memory_copy_once(&request, &p->page->slot[slot].request, sizeof request);
    if (p->version >= 2 && request.number != number) { /* the program has left it out */
        p->taken++;
        return 0;
    }
    if ((p->under_way & bit) != 0)
        return program_break_rules(p, "has reused the slot of a call that has not ended");
    p->taken++;
    p->under_way |= bit;
    p->number[slot] = number;
    if (p->state == PROGRAM_FAILED)
        program_call_ended(p, number, &p->failure);
    else if (take_call(p, &request, number, &e) != 0)
        program_call_ended(p, number, &e);
    return 0;
}

/* That a program may leave out and use until the daemon looks: it finds a free slot behind fewer than PROGRAM_CALLS that
 * are in use, at most once for each of them. */
#define NUMBERS_MOST (PROGRAM_CALLS * PROGRAM_CALLS)

void program_take_calls(struct program *p)
{
    uint32_t submitted;

    if (p->state != PROGRAM_MEMBER && p->state != PROGRAM_FAILED)
        return;
    (void)atomic_exchange(&p->page->rung, 0);
    submitted = atomic_load(&p->page->submitted);
    if (submitted - p->taken > (p->version >= 2 ? NUMBERS_MOST : PROGRAM_CALLS)) {
        (void)program_break_rules(p, "has submitted more calls than there are slots");
        return;
    }
    while (p->taken != submitted && take_next(p) == 0)
        ;
}
