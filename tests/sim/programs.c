#include "tests/sim/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/internal.h"

#define ROOM 64u /* around areas, to be left alone */
#define GUARD 0xa5
#define USED 0xee /* what has been sent may be written by the program */
#define PARTS 256u

struct buffer {
    struct program_memory memory;
    uint8_t byte[];
};

/* A call under way. */
struct made {
    struct made *next;
    uint32_t index;
    struct sim_call call;
    struct buffer *send, *receive;
    bool completed; /* and its program has not waited for it yet */
};

struct program {
    struct sim_programs *all;
    uint32_t rank;
    uint32_t life; /* of its node */
    struct group *group;
    struct made *made; /* the last one first */
    bool *has_called;  /* by call; not what it has mistaken for another */
    uint32_t calls, under_way, unwaited, completed;
    bool open, stopped, dead, left, due;
    bool gives_up;
    uint32_t shrunk; /* so many times */
    struct sim_call mistake;
    struct sim_call
        *instead; /* by call; what it has mistaken for it, or operation 0. NULL: nothing */
    struct error error;
    uint64_t told_at;
    uint32_t late_times;
    char late[200];
    bool *gone; /* by node: it has been left out; NULL: none has */
};

struct sim_programs {
    struct sim_programs *next; /* in sim.programs */
    struct sim *sim;
    struct sim_programs_setup set;
    const struct torus *torus;
    struct program *program;
    struct chance chance;
    uint64_t disturbed_at, failed_at, moved_at;
    unsigned disturbances;
    uint64_t left_out; /* bit: a part (up to 6 dimensions) that programs could not open */
    bool opened;       /* by a program; */
    bool never_opens;  /* and another one was told that none can have */
};

enum group_operation sim_any_operation(struct chance *c)
{
    enum group_operation operation;

    do
        operation = GROUP_ALLTOALL + (enum group_operation)chance_below(c, GROUP_OPERATIONS - 1);
    while (operation == GROUP_PART);
    return operation;
}

bool sim_may_be_in_place(enum group_operation operation)
{
    return operation == GROUP_ALLGATHER || operation == GROUP_ALLGATHERV ||
           operation == GROUP_ALLREDUCE || operation == GROUP_REDUCE;
}

struct sim_call sim_any_call(struct chance *c, const struct torus *t)
{
    static const uint64_t sizes[] = {0, 1, 3, 8, 64, 65, 1000, 4096, 5000, 20000};
    uint64_t size = sizes[chance_below(c, sizeof sizes / sizeof *sizes)];
    struct sim_call call = {
        .operation = sim_any_operation(c),
        .type = (enum reduction_type)(1 + chance_below(c, REDUCTION_TYPES - 1)),
        .operator=(enum reduction_operator)(1 + chance_below(c, REDUCTION_OPERATORS - 1)),
        .size = chance_below(c, 25) == 0 ? 20000 + chance_below(c, 60000) : size,
        .root = (uint32_t)chance_below(c, t->nodes),
    };

    if (!reduction_allowed(call.type, call.operator))
        call.operator= REDUCTION_MAX;
    call.in_place = chance_below(c, 3) == 0 && sim_may_be_in_place(call.operation);
    return call;
}

/* --- what is sent --- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ b * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 31;
}

static uint64_t call_seed(const struct sim_programs *p, uint32_t index)
{
    return mix(p->set.seed, index + 1);
}

/* Eight bytes at a time. */
static uint64_t block_seed(uint64_t seed, uint32_t from, uint32_t to)
{
    return mix(mix(seed, from + 1), to + 1);
}

static void write_block(uint8_t *at, uint64_t size, uint64_t block)
{
    for (uint64_t k = 0; k < size; k += 8) {
        uint64_t word = mix(block, k);
        memcpy(at + k, &word, size - k < 8 ? size - k : 8);
    }
}

static uint64_t uneven(uint64_t seed, uint64_t size, uint32_t from, uint32_t to)
{
    uint64_t word = mix(mix(seed, from + 100), to + 200);
    return word % 4 == 0 ? 0 : word % (size + 1);
}

/* An element that a member contributes, small enough for all operators to be exact. */
static void put_element(uint8_t *to, const struct sim_call *call, uint64_t seed, uint32_t member,
                        uint64_t at)
{
    uint64_t word = mix(mix(seed, member + 7), at);
    uint32_t small = call->operator== REDUCTION_PRODUCT ? 1 + word % 2 : word % 16;
    uint64_t integer = small;
    float f = (float)small;
    double d = small;

    if (call->type == REDUCTION_FLOAT32)
        memcpy(to, &f, sizeof f);
    else if (call->type == REDUCTION_FLOAT64)
        memcpy(to, &d, sizeof d);
    else /* little-endian machines only, as all that run this */
        memcpy(to, &integer, reduction_size(call->type));
}

/* --- members of a part --- */

struct team {
    uint32_t size, rank;
    uint32_t node[1024];
};

/* Written out independently: all nodes whose other coordinates are this node's, in their order. */
static struct team team_of(const struct program *p, uint32_t part)
{
    const struct torus *t = p->all->torus;
    uint32_t rank = p->rank;
    uint32_t mine[TORUS_MAX_DIMS], theirs[TORUS_MAX_DIMS];
    struct team team = {0};

    torus_coordinates(t, rank, mine);
    for (uint32_t node = 0; node < t->nodes; node++) {
        bool in = true;
        torus_coordinates(t, node, theirs);
        for (unsigned d = 0; d < t->dims; d++)
            in = in && ((part & 1u << d) != 0 || mine[d] == theirs[d]);
        if (!in || (p->gone != NULL && p->gone[node]))
            continue;
        if (node == rank)
            team.rank = team.size;
        team.node[team.size++] = node;
    }
    return team;
}

static uint32_t all_dimensions(const struct torus *t)
{
    return (1u << t->dims) - 1;
}

/* --- memory --- */

static void free_buffer(struct program_memory *memory)
{
    free((char *)memory - offsetof(struct buffer, memory));
}

static struct buffer *new_buffer(uint64_t bytes)
{
    struct buffer *b = sim_alloc(sizeof *b + bytes + 2 * ROOM);

    b->memory = (struct program_memory){b->byte, bytes + 2 * ROOM, 1, free_buffer};
    memset(b->byte, GUARD, bytes + 2 * ROOM);
    return b;
}

static struct program_area area_of(struct buffer *b)
{
    return (struct program_area){&b->memory, ROOM, b->memory.size - 2 * ROOM};
}

static void check_guards(const struct program *p, const struct made *m, const struct buffer *b)
{
    for (unsigned i = 0; i < ROOM; i++)
        if (b->byte[i] != GUARD || b->byte[b->memory.size - 1 - i] != GUARD)
            sim_violated(p->all->sim, "guards", "call %u at node %u wrote outside of its area",
                         m->index, p->rank);
}

/* --- making a call --- */

struct shape {
    uint64_t send[1024], send_at[1024], receive[1024], receive_at[1024]; /* bytes, or elements */
    uint64_t send_bytes, receive_bytes;
};

static uint64_t lay_out(uint64_t *size, uint64_t *at, uint32_t count)
{
    uint64_t next = 0;

    for (uint32_t i = 0; i < count; i++) {
        at[i] = next;
        next += size[i] + (i % 3 == 1 ? 5 : 0); /* holes, and nothing aligned */
    }
    return next;
}

static void shape_of(struct shape *s, const struct sim_call *call, uint64_t seed,
                     const struct team *team)
{
    uint64_t element = reduction_size(call->type), sum = 0;

    memset(s, 0, sizeof *s);
    switch (call->operation) {
    case GROUP_ALLTOALL:
        s->send_bytes = s->receive_bytes = call->size * team->size;
        break;
    case GROUP_ALLTOALLV:
        for (uint32_t i = 0; i < team->size; i++) {
            s->send[i] = uneven(seed, call->size, team->rank, i);
            s->receive[i] = uneven(seed, call->size, i, team->rank);
        }
        s->send_bytes = lay_out(s->send, s->send_at, team->size);
        s->receive_bytes = lay_out(s->receive, s->receive_at, team->size);
        break;
    case GROUP_ALLGATHER:
        s->send_bytes = call->size;
        s->receive_bytes = call->size * team->size;
        break;
    case GROUP_ALLGATHERV:
        for (uint32_t i = 0; i < team->size; i++)
            s->receive[i] = uneven(seed, call->size, i, 0);
        s->send_bytes = s->receive[team->rank];
        s->receive_bytes = lay_out(s->receive, s->receive_at, team->size);
        break;
    case GROUP_BROADCAST:
        s->receive_bytes = call->size;
        break;
    case GROUP_ALLREDUCE:
        s->send_bytes = s->receive_bytes = call->size * element;
        break;
    case GROUP_REDUCE:
        s->send_bytes = call->size * element;
        s->receive_bytes = team->rank == call->root ? s->send_bytes : 0;
        break;
    case GROUP_REDUCE_SCATTER:
        for (uint32_t i = 0; i < team->size; i++) {
            s->receive[i] = uneven(seed, call->size, i, 0);
            sum += s->receive[i];
        }
        s->send_bytes = sum * element;
        s->receive_bytes = s->receive[team->rank] * element;
        break;
    default:
        break;
    }
}

/* This member makes the call in place: of a reduce only the root can. */
static bool is_in_place(const struct sim_call *call, const struct team *team)
{
    return call->in_place && (call->operation != GROUP_REDUCE || team->rank == call->root);
}

/* Where the receive area, in place, or the send area has what this member sends. */
static void fill(const struct made *m, uint64_t seed, const struct team *team,
                 const struct shape *s)
{
    const struct sim_call *call = &m->call;
    uint8_t *send = m->send->byte + ROOM, *receive = m->receive->byte + ROOM;
    uint8_t *to = is_in_place(call, team) ? receive : send;
    uint64_t element = reduction_size(call->type);

    switch (call->operation) {
    case GROUP_ALLTOALL:
        for (uint32_t i = 0; i < team->size; i++)
            write_block(send + i * call->size, call->size, block_seed(seed, team->rank, i));
        break;
    case GROUP_ALLTOALLV:
        for (uint32_t i = 0; i < team->size; i++)
            write_block(send + s->send_at[i], s->send[i], block_seed(seed, team->rank, i));
        break;
    case GROUP_ALLGATHER:
    case GROUP_ALLGATHERV:
        if (call->in_place)
            to += call->operation == GROUP_ALLGATHER ? team->rank * call->size
                                                     : s->receive_at[team->rank];
        write_block(to, s->send_bytes, block_seed(seed, team->rank, 0));
        break;
    case GROUP_BROADCAST:
        if (team->rank == call->root)
            write_block(receive, call->size, block_seed(seed, call->root, 0));
        break;
    case GROUP_ALLREDUCE:
    case GROUP_REDUCE:
    case GROUP_REDUCE_SCATTER:
        for (uint64_t k = 0; element > 0 && k < s->send_bytes / element; k++)
            put_element(to + k * element, call, seed, team->rank, k);
        break;
    default:
        break;
    }
}

/* --- what must come --- */

static void wrong(const struct program *p, const struct made *m, uint32_t from, uint64_t at)
{
    if (!sim_has_lied(p->all->sim))
        sim_violated(p->all->sim, "contents",
                     "call %u (operation %u) at node %u: byte %llu of member %u", m->index,
                     (unsigned)m->call.operation, p->rank, (unsigned long long)at, from);
}

static void check_block(const struct program *p, const struct made *m, const uint8_t *block,
                        uint64_t size, uint64_t seed, uint32_t from, uint32_t to)
{
    uint64_t wanted = block_seed(seed, from, to);

    for (uint64_t k = 0; k < size; k += 8) {
        uint64_t word = mix(wanted, k);
        bool same = size - k < 8 ? memcmp(block + k, &word, size - k) == 0
                                 : memcmp(block + k, &word, 8) == 0; /* without a call */
        if (!same)
            wrong(p, m, from, k);
    }
}

/* In the order of the members; all of it is exact, so any order is right. */
static void check_vector(const struct program *p, const struct made *m, const uint8_t *got,
                         uint64_t first, uint64_t count, uint64_t seed, const struct team *team)
{
    const struct sim_call *call = &m->call;
    uint32_t size = reduction_size(call->type);
    uint8_t *sum = sim_alloc(count * size), *one = sim_alloc(count * size);

    for (uint32_t i = 0; i < team->size; i++) {
        uint8_t *to = i == 0 ? sum : one;
        for (uint64_t k = 0; k < count; k++)
            put_element(to + k * size, call, seed, i, first + k);
        if (i > 0)
            reduction_combine(call->type, call->operator, sum, one, count);
    }
    for (uint64_t k = 0; k < count; k++)
        if (memcmp(sum + k * size, got + k * size, size) != 0) {
            wrong(p, m, 0, k * size);
            break;
        }
    free(sum);
    free(one);
}

static void check_made(const struct program *p, const struct made *m)
{
    const struct sim_programs *all = p->all;
    const struct sim_call *call = &m->call;
    uint32_t part = call->part != 0 ? call->part : all_dimensions(all->torus);
    const struct team team = team_of(p, part);
    uint64_t seed = call_seed(all, m->index), first = 0;
    const uint8_t *got = m->receive->byte + ROOM;
    struct shape s;

    shape_of(&s, call, seed, &team);
    switch (call->operation) {
    case GROUP_ALLTOALL:
        for (uint32_t i = 0; i < team.size; i++)
            check_block(p, m, got + i * call->size, call->size, seed, i, team.rank);
        break;
    case GROUP_ALLTOALLV:
        for (uint32_t i = 0; i < team.size; i++)
            check_block(p, m, got + s.receive_at[i], s.receive[i], seed, i, team.rank);
        break;
    case GROUP_ALLGATHER:
        for (uint32_t i = 0; i < team.size; i++)
            check_block(p, m, got + i * call->size, call->size, seed, i, 0);
        break;
    case GROUP_ALLGATHERV:
        for (uint32_t i = 0; i < team.size; i++)
            check_block(p, m, got + s.receive_at[i], s.receive[i], seed, i, 0);
        break;
    case GROUP_BROADCAST:
        check_block(p, m, got, call->size, seed, call->root, 0);
        break;
    case GROUP_ALLREDUCE:
        check_vector(p, m, got, 0, call->size, seed, &team);
        break;
    case GROUP_REDUCE:
        if (team.rank == call->root)
            check_vector(p, m, got, 0, call->size, seed, &team);
        break;
    case GROUP_REDUCE_SCATTER:
        for (uint32_t i = 0; i < team.rank; i++)
            first += s.receive[i];
        check_vector(p, m, got, first, s.receive[team.rank], seed, &team);
        break;
    default:
        break;
    }
    check_guards(p, m, m->send);
    check_guards(p, m, m->receive);
}

/* A barrier is complete when all have called it. */
static void check_all_have_called(const struct program *p, const struct made *m)
{
    const struct sim_programs *all = p->all;
    uint32_t part = m->call.part != 0 ? m->call.part : all_dimensions(all->torus);
    const struct team team = team_of(p, part);

    for (uint32_t i = 0; i < team.size && !all->set.shrinks; i++) /* else they may call it again */
        if (!all->program[team.node[i]].has_called[m->index] && !sim_has_lied(all->sim))
            sim_violated(all->sim, "barrier", "call %u is complete at node %u, not made at node %u",
                         m->index, p->rank, team.node[i]);
}

/* --- a program's life --- */

static bool node_lives(const struct program *p)
{
    const struct node *node = &p->all->sim->node[p->rank];
    return node->alive && !node->leaving && node->life == p->life;
}

static void free_made(struct made *m)
{
    program_memory_unref(&m->send->memory);
    program_memory_unref(&m->receive->memory);
    free(m);
}

static void disturb(struct sim_programs *all)
{
    all->disturbances++;
    if (all->disturbed_at > sim_now(all->sim))
        all->disturbed_at = sim_now(all->sim);
}

/* In whose order a call is. */
static uint32_t order_of(const struct sim_call *call)
{
    return call->operation == GROUP_PART ? 0 : call->part;
}

/* Its group must fail now. */
static void fail(struct sim_programs *all)
{
    if (all->failed_at > sim_now(all->sim))
        all->failed_at = sim_now(all->sim);
}

static bool has_part(const struct program *p, uint32_t part)
{
    const struct sim_programs_setup *set = &p->all->set;

    for (uint32_t i = 0; i < set->calls; i++)
        if (set->call[i].operation == GROUP_PART && set->call[i].part == part)
            return p->has_called[i];
    return part == 0;
}

/* The call to be made next: the first, or that of any part. Returns `calls` if there is none. */
static uint32_t next_call(struct program *p)
{
    const struct sim_programs_setup *set = &p->all->set;
    bool seen[PARTS] = {0};
    uint32_t found = set->calls;
    unsigned choices = 0;

    for (uint32_t i = 0; i < set->calls; i++) {
        uint32_t order = order_of(&set->call[i]);
        if (p->has_called[i] || seen[order])
            continue;
        seen[order] = true;
        if (!set->shuffle)
            return i;
        if (has_part(p, order) && chance_below(&p->all->chance, ++choices) == 0)
            found = i;
    }
    return found;
}

/* Calls that cannot be are refused, and nothing else. */
static void call_wrongly(struct program *p, const struct group_call *right, uint32_t members)
{
    struct sim_programs *all = p->all;
    struct group_call call = *right;
    unsigned kind = (unsigned)chance_below(&all->chance, 8);
    struct error e;

    if (kind == 0) {
        call.operation = (enum group_operation)(20 + chance_below(&all->chance, 100));
    } else if (kind == 1) {
        call.operation = GROUP_BROADCAST;
        call.root = members;
    } else if (kind == 2) {
        call.operation = GROUP_ALLTOALL;
        call.in_place = false;
        call.size = call.receive.memory->size;
    } else if (kind == 3) {
        call.operation = GROUP_ALLREDUCE;
        call.type = REDUCTION_FLOAT32;
        call.operator= REDUCTION_XOR;
    } else if (kind == 4) {
        call.operation = GROUP_PART;
        call.part = 1u << all->torus->dims;
    } else if (kind == 5) {
        call.operation = GROUP_REDUCE;
        call.root = members;
    } else if (kind == 6) { /* elsewhere than at the root, or into no memory */
        call.operation = GROUP_REDUCE;
        call.in_place = true;
        call.size = call.receive.memory->size + 1;
    } else {
        call.receive.offset = call.receive.memory->size + 1;
        call.operation = GROUP_ALLGATHER;
    }
    if (all->disturbances == 0 && sim_harms(all->sim) == 0 && p->error.code == ERROR_NONE &&
        group_call(p->group, &call, UINT64_MAX, &e) == 0)
        sim_violated(all->sim, "wrong calls", "node %u: one of kind %u is accepted", p->rank, kind);
}

/* Whether the group need not fail if one program calls this and the others that. */
static bool may_pass(const struct sim_call *a, const struct sim_call *b)
{
    bool reduces = a->operation == GROUP_ALLREDUCE || a->operation == GROUP_REDUCE_SCATTER ||
                   a->operation == GROUP_REDUCE;

    if (a->operation != b->operation)
        return false;
    if (a->operation == GROUP_ALLTOALLV || a->operation == GROUP_ALLGATHERV)
        return true; /* what comes of the sizes may be the same */
    if ((a->operation == GROUP_BROADCAST || a->operation == GROUP_REDUCE) && a->root != b->root)
        return false;
    if (reduces && (a->type != b->type || a->operator!= b->operator))
        return false;
    return a->operation == GROUP_REDUCE_SCATTER || a->size == b->size;
}

/* The group goes around links without which this part falls into pieces, at some node or other: all of
 * its calls are left out, by every program. */
static void leave_out(struct program *p, uint32_t part)
{
    const struct sim_programs_setup *set = &p->all->set;
    struct made *refused = p->made;

    p->made = refused->next;
    free_made(refused);
    p->under_way--;
    p->completed++;
    for (uint32_t i = 0; i < set->calls; i++)
        if (!p->has_called[i] && set->call[i].part == part) {
            p->has_called[i] = true;
            p->calls++;
            p->completed++;
        }
}

static void make(struct program *p, uint32_t index)
{
    struct sim_programs *all = p->all;
    struct made *m = sim_alloc(sizeof *m);
    struct shape s;
    struct error e;

    *m = (struct made){.index = index, .call = all->set.call[index]};
    uint32_t part = m->call.part != 0 ? m->call.part : all_dimensions(all->torus);
    const struct team team = team_of(p, part);
    if (p->mistake.operation != 0 && m->call.operation != GROUP_PART) {
        p->mistake.part = m->call.part;
        p->mistake.root %= team.size;
        disturb(all);
        m->call = p->mistake;
        if (p->instead == NULL)
            p->instead = sim_alloc(all->set.calls * sizeof *p->instead);
        p->instead[index] = m->call;
        p->mistake.operation = 0;
    }
    m->call.root %= team.size;
    if (m->call.timeout > 0) /* it may pass */
        disturb(all);
    uint64_t seed = call_seed(all, m->index);
    shape_of(&s, &m->call, seed, &team);
    m->send = new_buffer(s.send_bytes);
    m->receive = new_buffer(s.receive_bytes);
    fill(m, seed, &team, &s);
    const struct group_call call = {.operation = m->call.operation,
                                    .part = part,
                                    .root = m->call.root,
                                    .type = m->call.type,
                                    .operator= m->call.operator,
                                    .size = m->call.size,
                                    .send_size = s.send,
                                    .send_offset = s.send_at,
                                    .receive_size = s.receive,
                                    .receive_offset = s.receive_at,
                                    .send = area_of(m->send),
                                    .receive = area_of(m->receive),
                                    .in_place = is_in_place(&m->call, &team),
                                    .timeout_ns = m->call.timeout,
                                    .late_ns = m->call.late};
    if (all->set.careless && chance_below(&all->chance, 8) == 0)
        call_wrongly(p, &call, team.size);
    m->next = p->made;
    p->made = m;
    p->calls++;
    p->under_way++;
    p->has_called[index] = true;
    all->moved_at = sim_now(all->sim);
    if (group_call(p->group, &call, m->index, &e) == 0)
        return;
    if (call.operation == GROUP_PART && e.code == ERROR_LINK && sim_harms(all->sim) > 0) {
        all->left_out |= UINT64_C(1) << call.part % 64;
        leave_out(p, call.part);
        return;
    }
    if ((e.code != ERROR_MEMORY || sim_harms(all->sim) == 0) && !sim_has_lied(all->sim))
        sim_violated(all->sim, "calls", "node %u: call %u is refused: %s", p->rank, m->index,
                     e.text);
    p->gives_up = true;
}

static void leave(struct program *p)
{
    if (p->completed < p->all->set.calls)
        disturb(p->all);
    if (p->under_way > 0)
        fail(p->all);
    group_close(p->group);
    p->group = NULL;
    p->left = true;
}

/* It waits for one of the calls that are complete: nothing has touched its memory since. */
static void wait_for_one(struct program *p)
{
    struct made **at = &p->made, **found = NULL;
    unsigned choices = 0;

    for (; *at != NULL; at = &(*at)->next)
        if ((*at)->completed && chance_below(&p->all->chance, ++choices) == 0)
            found = at;
    struct made *m = *found;
    *found = m->next;
    check_made(p, m);
    free_made(m);
    p->unwaited--;
}

static bool can_call(const struct program *p)
{
    return p->calls < p->all->set.calls && p->under_way + p->unwaited < p->all->set.depth;
}

static bool can_leave(const struct program *p)
{
    return p->calls == p->all->set.calls && p->under_way + p->unwaited == 0 && !p->all->set.stay;
}

static void go_on(struct program *p);

static void on_due(struct sim *sim, void *context)
{
    struct program *p = context;
    struct node *node = &sim->node[p->rank];

    p->due = false;
    if (!node_lives(p) || p->group == NULL || !p->open || p->stopped)
        return;
    if (node->frozen) { /* its program can call, but the daemon hears it later */
        go_on(p);
        return;
    }
    sim_enter(node);
    if (p->unwaited > 0 && (!can_call(p) || chance_below(&p->all->chance, 2) == 0))
        wait_for_one(p);
    else if (can_call(p))
        make(p, next_call(p));
    else if (can_leave(p))
        leave(p);
    if (p->gives_up && p->group != NULL)
        leave(p);
    sim_leave();
    sim_settle(node);
    if (p->group != NULL && (can_call(p) || p->unwaited > 0 || can_leave(p)))
        go_on(p);
}

static void go_on(struct program *p)
{
    struct sim *sim = p->all->sim;
    uint64_t pause = p->all->set.pause;

    if (p->due)
        return;
    p->due = true;
    if (sim->node[p->rank].frozen && pause < 10 * MILLISECONDS)
        pause = 10 * MILLISECONDS;
    sim_at(sim, sim_now(sim) + (pause > 0 ? chance_below(&p->all->chance, pause) : 0) + 1, on_due,
           p);
}

/* Each opens the group once, unless it shrinks it. */
static void check_certain(const struct sim_programs *all)
{
    if (all->opened && all->never_opens && !all->set.shrinks)
        sim_violated(all->sim, "opening",
                     "a program has opened the group, and one that could not was "
                     "not told that others may have");
}

static void on_opened(void *context, struct group *group)
{
    struct program *p = context;
    const uint32_t nodes = p->all->torus->nodes;

    if (group_gone(group) != NULL) {
        p->gone = sim_alloc(nodes * sizeof *p->gone);
        memcpy(p->gone, group_gone(group), nodes * sizeof *p->gone);
    }
    if (group_members(group) != team_of(p, all_dimensions(p->all->torus)).size)
        sim_violated(p->all->sim, "members", "node %u: %u members", p->rank, group_members(group));
    p->open = p->all->opened = true;
    check_certain(p->all);
    p->all->moved_at = sim_now(p->all->sim);
    go_on(p);
}

static void on_called(void *context, uint64_t name, const struct error *e)
{
    struct program *p = context;
    struct made **at = &p->made;

    while (*at != NULL && ((*at)->index != name || (*at)->completed))
        at = &(*at)->next;
    if (*at == NULL || e != NULL)
        sim_violated(p->all->sim, "calls", "node %u is told of call %llu twice, or of a failure",
                     p->rank, (unsigned long long)name);
    struct made *m = *at;
    check_made(p, m);
    if (m->call.operation == GROUP_BARRIER)
        check_all_have_called(p, m);
    memset(m->send->byte + ROOM, USED, m->send->memory.size - 2 * ROOM);
    if (p->all->set.lazy) {
        m->completed = true;
        p->unwaited++;
    } else {
        *at = m->next;
        free_made(m);
    }
    p->under_way--;
    p->completed++;
    p->all->moved_at = sim_now(p->all->sim);
    go_on(p);
}

/* Of a call that has not ended. */
static void on_late(void *context, uint64_t name, const char *whom)
{
    struct program *p = context;
    const struct made *m = p->made;

    while (m != NULL && (m->index != name || m->completed))
        m = m->next;
    if (m == NULL || m->call.late == 0)
        sim_violated(p->all->sim, "calls", "node %u is told whom call %llu waits for", p->rank,
                     (unsigned long long)name);
    p->late_times++;
    (void)snprintf(p->late, sizeof p->late, "%s", whom);
}

static void on_open(struct sim *sim, void *context);

static void shrink(struct program *p)
{
    struct sim_programs *all = p->all;

    while (p->made != NULL) {
        struct made *m = p->made;
        p->made = m->next;
        free_made(m);
    }
    memset(p->has_called, 0, all->set.calls * sizeof *p->has_called);
    p->calls = p->under_way = p->unwaited = p->completed = 0;
    p->open = false;
    free(p->gone);
    p->gone = NULL;
    p->shrunk++;
    sim_at(all->sim,
           sim_now(all->sim) +
               (all->set.pause > 0 ? chance_below(&all->chance, all->set.pause) : 0),
           on_open, p);
}

static void on_ended(void *context, const struct error *e)
{
    struct program *p = context;

    p->told_at = p->all->moved_at = sim_now(p->all->sim);
    p->group = NULL;
    p->all->never_opens |= !p->open && e->code != ERROR_IN_DOUBT;
    check_certain(p->all);
    if (p->all->set.shrinks && p->open && e->code == ERROR_LINK)
        shrink(p);
    else
        p->error = *e; /* whoever shrinks it hears of no link before it is open */
}

static void on_open(struct sim *sim, void *context)
{
    struct program *p = context;
    struct node *node = &sim->node[p->rank];
    const struct group_client client = {p, on_opened, on_called, on_ended, on_late};
    const struct group_options options = {.name = p->all->set.name,
                                          .user = 1000 + p->rank % 3,
                                          .timeout_ns = p->all->set.timeout,
                                          .unchecked = p->all->set.unchecked,
                                          .shrink = p->shrunk > 0};

    if (p->dead)
        return;
    if (!node->alive || (p->shrunk > 0 && p->life != node->life)) {
        p->dead = true;
        disturb(p->all);
        return;
    }
    if (node->frozen) {
        sim_at(sim, sim_now(sim) + 10 * MILLISECONDS, on_open, p);
        return;
    }
    p->life = node->life;
    sim_enter(node);
    p->group = group_open(core_groups(node->core), &options, &client, &p->error);
    sim_leave();
    if (p->group == NULL) {
        p->told_at = sim_now(sim);
        disturb(p->all);
    }
    sim_settle(node);
}

struct sim_programs *sim_programs_new(struct sim *sim, const struct sim_programs_setup *setup)
{
    struct sim_programs *all = sim_alloc(sizeof *all);

    *all = (struct sim_programs){.sim = sim, .set = *setup, .torus = sim_torus(sim)};
    all->next = sim->programs;
    sim->programs = all;
    all->chance = chance_stream(setup->seed, 77, 0);
    all->program = sim_alloc(all->torus->nodes * sizeof *all->program);
    all->disturbed_at = all->failed_at = UINT64_MAX;
    all->moved_at = sim_now(sim);
    for (uint32_t rank = 0; rank < all->torus->nodes; rank++) {
        all->program[rank] =
            (struct program){.all = all, .rank = rank, .has_called = sim_alloc(setup->calls + 1)};
        sim_at(sim,
               sim_now(sim) + (setup->pause > 0 ? chance_below(&all->chance, setup->pause) : 0),
               on_open, &all->program[rank]);
    }
    return all;
}

void sim_programs_free(struct sim_programs *all)
{
    for (uint32_t rank = 0; rank < all->torus->nodes; rank++) {
        struct program *p = &all->program[rank];
        if (p->group != NULL && node_lives(p))
            sim_program_die(all, rank);
        while (p->made != NULL) {
            struct made *m = p->made;
            p->made = m->next;
            free_made(m);
        }
        p->dead = true;
    }
}

void sim_programs_forget(struct sim *sim)
{
    while (sim->programs != NULL) {
        struct sim_programs *all = sim->programs;
        sim->programs = all->next;
        for (uint32_t rank = 0; rank < all->torus->nodes; rank++) {
            free(all->program[rank].has_called);
            free(all->program[rank].gone);
            free(all->program[rank].instead);
        }
        free(all->program);
        free(all);
    }
}

static bool is_over(const struct program *p)
{
    bool done = p->calls == p->all->set.calls && p->under_way == 0 && p->all->set.stay && p->open;
    return done || p->left || p->dead || p->error.code != ERROR_NONE ||
           (p->life > 0 && !node_lives(p));
}

static bool are_over(struct sim *sim, void *context)
{
    struct sim_programs *all = context;

    (void)sim;
    for (uint32_t rank = 0; rank < all->torus->nodes; rank++)
        if (!is_over(&all->program[rank]))
            return false;
    return true;
}

bool sim_programs_run(struct sim_programs *all, uint64_t most)
{
    return sim_run(all->sim, most, are_over, all);
}

uint32_t sim_programs_done(const struct sim_programs *all)
{
    uint32_t n = 0;

    for (uint32_t rank = 0; rank < all->torus->nodes; rank++)
        n += all->program[rank].completed == all->set.calls;
    return n;
}

uint32_t sim_programs_failed(const struct sim_programs *all)
{
    uint32_t n = 0;

    for (uint32_t rank = 0; rank < all->torus->nodes; rank++)
        n += all->program[rank].error.code != ERROR_NONE;
    return n;
}

uint32_t sim_program_completed(const struct sim_programs *all, uint32_t rank)
{
    return all->program[rank].completed;
}

const struct error *sim_program_error(const struct sim_programs *all, uint32_t rank)
{
    return &all->program[rank].error;
}

uint32_t sim_program_late(const struct sim_programs *p, uint32_t rank, const char **whom)
{
    *whom = p->program[rank].late;
    return p->program[rank].late_times;
}

uint64_t sim_program_told_at(const struct sim_programs *all, uint32_t rank)
{
    return all->program[rank].told_at;
}

struct sim_program_state sim_program_state(const struct sim_programs *all, uint32_t rank)
{
    const struct program *p = &all->program[rank];

    return (struct sim_program_state){
        .open = p->open,
        .member = p->group != NULL && node_lives(p),
        .stopped = p->stopped,
        .over = is_over(p),
        .shrunk = p->shrunk,
        .calls = p->calls,
        .completed = p->completed,
    };
}

uint64_t sim_programs_disturbed_at(const struct sim_programs *all)
{
    return all->disturbed_at;
}

unsigned sim_programs_disturbances(const struct sim_programs *all)
{
    return all->disturbances;
}

static const struct sim_call *what_is_called(const struct sim_programs *all, uint32_t rank,
                                             uint32_t index)
{
    const struct sim_call *instead = all->program[rank].instead;
    return instead != NULL && instead[index].operation != 0 ? &instead[index]
                                                            : &all->set.call[index];
}

/* Those who are mistaken in the same call may by chance agree. */
bool sim_programs_mistaken(const struct sim_programs *all)
{
    for (uint32_t rank = 0; rank < all->torus->nodes; rank++)
        for (uint32_t i = 0; i < all->set.calls && all->program[rank].instead != NULL; i++) {
            const struct sim_call *call = what_is_called(all, rank, i);
            const struct team team = team_of(
                &all->program[rank], call->part != 0 ? call->part : all_dimensions(all->torus));
            for (uint32_t k = 0; k < team.size; k++)
                if (!may_pass(call, what_is_called(all, team.node[k], i)))
                    return true;
        }
    return false;
}

uint64_t sim_programs_failed_at(const struct sim_programs *all)
{
    return all->failed_at;
}

uint64_t sim_programs_moved_at(const struct sim_programs *all)
{
    return all->moved_at;
}

void sim_program_leave(struct sim_programs *all, uint32_t rank)
{
    struct program *p = &all->program[rank];
    struct node *node = &all->sim->node[rank];

    if (p->group == NULL || !node_lives(p) || node->frozen)
        return;
    sim_enter(node);
    leave(p);
    sim_leave();
    sim_settle(node);
}

void sim_program_stop(struct sim_programs *all, uint32_t rank)
{
    all->program[rank].stopped = true;
}

void sim_program_go_on(struct sim_programs *all, uint32_t rank)
{
    all->program[rank].stopped = false;
    go_on(&all->program[rank]);
}

void sim_program_die(struct sim_programs *all, uint32_t rank)
{
    struct program *p = &all->program[rank];
    struct node *node = &all->sim->node[rank];
    struct error e;

    p->dead = true;
    if (!p->left && p->error.code == ERROR_NONE)
        disturb(all);
    if (p->group == NULL || !node_lives(p))
        return;
    (void)error_set(&e, ERROR_CANCELLED, "the program at node %u has died", rank);
    sim_enter(node);
    group_abandon(p->group, &e);
    sim_leave();
    p->group = NULL;
    if (p->open) /* else another one may yet open it at its node */
        fail(all);
    sim_settle(node);
}

void sim_program_shrink(struct sim_programs *all, uint32_t rank)
{
    struct program *p = &all->program[rank];

    p->life = all->sim->node[rank].life;
    p->group = NULL;
    shrink(p);
}

void sim_program_mistake(struct sim_programs *all, uint32_t rank, const struct sim_call *call)
{
    all->program[rank].mistake = *call;
}

bool sim_program_is_without(const struct sim_programs *all, uint32_t rank, uint32_t node)
{
    const struct program *p = &all->program[rank];

    return p->gone != NULL && p->gone[node];
}

bool sim_programs_left_out(const struct sim_programs *p, uint32_t part)
{
    return (p->left_out & UINT64_C(1) << part % 64) != 0;
}
